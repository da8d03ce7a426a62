document.getElementById("room").textContent = "This is the room's page.";
