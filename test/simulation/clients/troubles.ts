/**
 * Faults that some clients aim at what their own requests call: what is wrong only where such a fault meets a repeat, or
 * another request, would else need thousands of runs.
 */
import type { Choice } from '../model/known.js';
import type { Chance } from '../world/chance.js';
import type { Faults } from '../world/faults.js';

/** Share of runs with such clients; of their requests with such a fault, and the same of the rarer kinds of requests. */
const RUNS = 0.2;
const REQUESTS = 0.3;
const RARE_REQUESTS = 0.8;
const RARE: ReadonlySet<string> = new Set(['purchase', 'claim', 'block', 'unblock', 'extend', 'reassign']);

/** Faults by their names, each with the call that it happens to. */
type Trouble = readonly (readonly [fault: string, call: RegExp])[];

/** The answer is not stored for its key. A key that is not taken has the version 0. */
const UNSTORED: Trouble = [['documents refuses', / put idempotency:\S+ at [1-9]/]];
/** The key comes to be free again late. */
const FREED_LATE: Trouble = [['documents carries out an abandoned call', / delete idempotency:/]];

function troublesOf({ operation }: Choice): readonly Trouble[] {
  const ofKeys = 'key' in operation && operation.key !== undefined ? [UNSTORED, UNSTORED, FREED_LATE] : [];
  switch (operation.kind) {
    case 'purchase':
      return operation.payment === 'wallet-prepaid' ? [[['events loses its caller', / append wallet-/]]] : ofKeys;
    case 'lookUpKey':
      return [[['documents is slow', / get idempotency:/]]];
    case 'redeem':
    case 'unredeem': {
      const append = new RegExp(` append gift-${operation.gift} `);
      return [...ofKeys, [['events loses an answer', append]], [['events refuses', append], ...FREED_LATE]];
    }
    default:
      return ofKeys;
  }
}

/** @returns aims faults at what a request is about to call, in some runs and for some requests */
export function drawnTroubles(chance: Chance, faults: Pick<Faults, 'aim'>): (choice: Choice) => void {
  const happensHere = chance.happens(RUNS);
  return (choice) => {
    if (!happensHere || !chance.happens(RARE.has(choice.operation.kind) ? RARE_REQUESTS : REQUESTS)) return;
    const troubles = troublesOf(choice);
    if (troubles.length === 0) return;
    for (const [fault, call] of chance.pick(troubles)) faults.aim(fault, call);
  };
}
