"""A scripted terminal program with a composer, dialogs and turns, whose faults are set by knobs."""
