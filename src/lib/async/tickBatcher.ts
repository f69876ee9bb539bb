/** The work of one turn of the event loop is done together at its end: code and data stay in the processor's caches. */
import { soon } from '../world.js';
import { LOW_PRIORITY_SLICE_MS, slices } from './slices.js';

interface TickBatcher<T> {
  add(item: T): number;
  size(): number;
  flush(): void;
  clear(): void;
}

/** Collects items and takes them at the turn's end. @param take returns the items left for the next turn */
export function tickBatcher<T>(take: (items: T[]) => T[] | undefined): TickBatcher<T> {
  let waiting: T[] = [];
  let scheduled = false;

  function flush(): void {
    if (waiting.length === 0) return;
    const items = waiting;
    waiting = [];
    const left = take(items);
    if (left === undefined || left.length === 0) return;
    waiting = waiting.length === 0 ? left : [...left, ...waiting];
    schedule();
  }

  function endTurn(): void {
    scheduled = false;
    flush();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    soon(endTurn);
  }

  return {
    add(item) {
      schedule();
      return waiting.push(item);
    },
    size: () => waiting.length,
    flush,
    clear() {
      waiting = [];
    },
  };
}

interface Request<Q, A> {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: unknown) => void;
}

interface BatchedAnswersOptions {
  /** Most questions answered in one turn; a turn also ends with its slice of time. */
  readonly atOnce: number;
  /** Wraps the answers of one turn, for example in a transaction. Its own errors fail every question of the turn. */
  readonly around?: (work: () => void) => void;
}

/** Answers questions in batches, one a turn. An error of `answer` fails only its question. */
export function batchedAnswers<Q, A>(
  answer: (question: Q) => A,
  { atOnce, around = (work) => work() }: BatchedAnswersOptions,
): (question: Q) => Promise<A> {
  const batch = tickBatcher<Request<Q, A>>((requests) => {
    const time = slices(LOW_PRIORITY_SLICE_MS);
    const now = requests.slice(0, atOnce);
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
    return requests.slice(answered);
  });
  return (question) => new Promise((resolve, reject) => void batch.add({ question, resolve, reject }));
}
