// Limit the pace of drawing, so that a click never waits for more than one piece of work.

/** The minimum pause after a full piece of work. */
const REST_MS = 150;

/** Does a piece of work in the next frame, and pauses afterwards if there was much to do. */
export class Pacer {
  #work;
  #isWaiting = false;
  #isWanted = false;

  /** @param {() => boolean} work does one bounded piece of work; returns whether to pause after it */
  constructor(work) {
    this.#work = work;
  }

  /** Schedule the work for the next frame, or after the pause. */
  wake() {
    this.#isWanted = true;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    // A page in the background gets no frames, but events must not pile up.
    if (document.hidden) setTimeout(() => this.#run(), 100);
    else requestAnimationFrame(() => this.#run());
  }

  #run() {
    const began = performance.now();
    this.#isWanted = false;
    if (!this.#work()) return this.#end();
    // The next task runs after the browser has drawn the frame; the pause is as long as that took.
    setTimeout(() => setTimeout(() => this.#end(), Math.max(REST_MS, performance.now() - began)));
  }

  #end() {
    this.#isWaiting = false;
    if (this.#isWanted) this.wake();
  }
}
