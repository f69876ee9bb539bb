/**
 * Key store rows of messages that a person wrote or got, of payment methods, and of support's texts about the person.
 */
import type { CommandContext } from '../../../commands/context.js';
import {
  lookupOf,
  purchaseSubject,
  paymentMethodSubject,
  type PersonName,
  supportTextSubject,
} from '../../../domain/personalFields.js';
import { inParallel } from '../../../lib/async/inParallel.js';
import type { SubjectRow } from '../../../ports/keyStore.js';
import type { ErasureDeps } from './erasureDeps.js';
import { erasePaymentMethod } from './retire.js';
import type { Traces } from './traces.js';

const AT_ONCE = 1_000;
const STREAMS_AT_ONCE = 16;

type Deps = Pick<ErasureDeps, 'events' | 'keys' | 'hash'>;

/** Fences the rows of the person's messages, payment methods and texts. @throws UnavailableError */
export async function fenceThings(deps: Deps, traces: Traces): Promise<void> {
  for (const ids of await rowsOf(deps, thingsOf(traces))) await deps.keys.fence(ids);
}

/** Ends the fences that `fenceThings` set. @throws UnavailableError */
export async function unfenceThings(deps: Deps, traces: Traces): Promise<void> {
  for (const ids of await rowsOf(deps, thingsOf(traces), ({ fenced }) => fenced === true)) await deps.keys.unfence(ids);
}

/**
 * @returns the number of purchases whose data key was removed
 * @throws UnavailableError, ConflictError
 */
export async function removeSubjects(
  deps: Deps,
  traces: Traces,
  erasureId: string,
  context: CommandContext,
): Promise<number> {
  const { events, keys } = deps;
  await inParallel(traces.ownMethods(), STREAMS_AT_ONCE, async (reference) =>
    erasePaymentMethod(events, reference, erasureId, context),
  );
  for (const ids of await rowsOf(deps, [...methodsOf(traces), ...textsOf(traces)])) await keys.remove(ids);
  let purchases = 0;
  for (const ids of await rowsOf(deps, messagesOf(traces))) {
    await keys.remove(ids);
    purchases += ids.length;
  }
  return purchases;
}

const messagesOf = ({ written }: Traces): PersonName[] => [...written].map(purchaseSubject);

const methodsOf = (traces: Traces): PersonName[] => traces.ownMethods().map(paymentMethodSubject);

const textsOf = ({ texts }: Traces): PersonName[] => [...texts()].map(supportTextSubject);

const thingsOf = (traces: Traces): PersonName[] => [...messagesOf(traces), ...methodsOf(traces), ...textsOf(traces)];

/** Ids of the existing rows with these names, in batches. */
async function rowsOf(
  { keys, hash }: Deps,
  names: readonly PersonName[],
  wanted: (row: SubjectRow) => boolean = () => true,
): Promise<string[][]> {
  const pieces: string[][] = [];
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const lookups = names.slice(from, from + AT_ONCE).map((name) => lookupOf(hash, name));
    pieces.push([...(await keys.byLookup(lookups)).values()].filter(wanted).map(({ id }) => id));
  }
  return pieces;
}
