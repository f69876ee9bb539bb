import type { ThreadFault } from '../sqlite.js';
import type { Answer, NumberedChange } from './messages.js';

export interface RequestQueue {
  add(requests: readonly NumberedChange[]): void;
  empty(): boolean;
  next(): NumberedChange | undefined;
  /** The fault of an earlier part of the same write. */
  faultBefore(numbered: NumberedChange): ThreadFault | undefined;
  fail(numbered: NumberedChange, fault: ThreadFault): void;
  answer(made: readonly Answer[]): void;
  takeAnswers(): Answer[];
}

export function openRequestQueue(): RequestQueue {
  /** Changes to records go first: requests wait for them, and they are small. */
  const urgent: NumberedChange[] = [];
  const others: NumberedChange[] = [];
  /** Faults of failed writes, by call, until their last part. */
  const failed = new Map<number, ThreadFault>();
  let answers: Answer[] = [];

  function faultBefore({ request }: NumberedChange): ThreadFault | undefined {
    return request.kind === 'write' ? failed.get(request.call) : undefined;
  }

  function fail({ id, request }: NumberedChange, fault: ThreadFault): void {
    if (request.kind === 'write') {
      if (request.last) failed.delete(request.call);
      else failed.set(request.call, fault);
    }
    answers.push({ id, fault });
  }

  return {
    add(requests) {
      for (const numbered of requests) {
        const { kind } = numbered.request;
        (kind === 'put' || kind === 'delete' ? urgent : others).push(numbered);
      }
    },
    empty: () => urgent.length + others.length === 0,
    next() {
      for (;;) {
        const numbered = urgent.shift() ?? others.shift();
        if (numbered === undefined) return undefined;
        const fault = faultBefore(numbered);
        if (fault === undefined) return numbered;
        fail(numbered, fault);
      }
    },
    faultBefore,
    fail,
    answer(made) {
      answers.push(...made);
    },
    takeAnswers() {
      const answered = answers.filter(({ id }) => id !== 0);
      answers = [];
      return answered;
    },
  };
}
