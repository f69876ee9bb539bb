/**
 * Reads that are asked for in one turn of the event loop are made together, when the rest of the turn is done. Doing
 * one kind of work many times over, the processor finds code and data in its caches; in between the parts of one
 * request after another it does not, and takes about twice as long for all of it.
 */
import { BESIDE_SLICE_MS, slices } from '../../../lib/async/slices.js';

interface Asked<Q, A> {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: unknown) => void;
}

/** How questions are answered together. */
export interface GatherOptions {
  /**
   * So many a turn, and no more than are answered in a slice (`slices.ts`); the others wait for the next, so that
   * nothing else is held up.
   */
  readonly atOnce: number;
  /** Runs all the work of one turn; what it throws beside the work fails every question of that turn. */
  readonly around?: (work: () => void) => void;
}

/**
 * Gathers questions, and has each answered at the end of the turn in which it is asked, in their order; what `answer`
 * throws fails that question alone.
 */
export function gather<Q, A>(
  answer: (question: Q) => A,
  { atOnce, around = (work) => work() }: GatherOptions,
): (question: Q) => Promise<A> {
  let asked: Asked<Q, A>[] = [];

  function answerThem(): void {
    const time = slices(BESIDE_SLICE_MS);
    const now = asked.slice(0, atOnce);
    let answered = 0;
    try {
      around(() => {
        for (const { question, resolve, reject } of now) {
          answered += 1;
          try {
            resolve(answer(question));
          } catch (error) {
            reject(error);
          }
          if (time.due()) break;
        }
      });
    } catch (error) {
      for (const { reject } of now) reject(error);
      answered = now.length;
    }
    asked = asked.slice(answered);
    if (asked.length > 0) setImmediate(answerThem);
  }

  return (question) =>
    new Promise((resolve, reject) => {
      if (asked.push({ question, resolve, reject }) === 1) setImmediate(answerThem);
    });
}
