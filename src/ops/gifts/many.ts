/** One action of support for many gifts or purchases (docs/support.md#many-at-once). */
import { type CommandContext, partOf } from '../../commands/transact.js';
import type { NewReceiver, ReassignDeps } from '../../commands/reassignGift.js';
import { refundGifts, skippedNow } from '../../commands/refundGifts.js';
import { isGiftId } from '../../domain/giftIds.js';
import { type KeyedHash, keyedHash } from '../../domain/keyedHash.js';
import { supportTextSubject } from '../../domain/personalFields.js';
import { Refusal } from '../../domain/refusal.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { randomUUID } from '../../lib/world.js';
import type { EventStore, NewEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { RefundRequested } from '../../domain/purchase/refund.js';
import { whyNoneCancelled, whyNotRefunded } from '../refunds/refundView.js';
import { type SupportAction, supportGift } from './supportActions.js';

/** A gift, or a purchase to refund. `receiver`: to whom the gift is reassigned. */
export interface ManyItem {
  readonly id: string;
  readonly receiver?: NewReceiver;
}

/** The receivers of a reassignment are in the items. */
export type ManyAction =
  | Exclude<SupportAction, { readonly name: 'reassign' }>
  | { readonly name: 'reassign' }
  | { readonly name: 'refund'; readonly voided: boolean };

/** `done` in a dry run: it would be. `why`: why it was refused. */
export interface HandledItem {
  readonly id: string;
  readonly outcome: 'done' | 'unchanged' | 'refused';
  readonly why?: string;
}

export interface ManyRequest {
  readonly action: ManyAction;
  readonly reason: string;
  readonly dryRun: boolean;
}

interface ManyDeps extends ReassignDeps {
  readonly hash: KeyedHash;
}

interface ManyOptions {
  readonly context: CommandContext;
  /** Milliseconds to wait for each refund. */
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  /** Called before an item is changed. An error is that of the item. */
  readonly before?: () => Promise<void>;
  /** Why the error refuses its item; `undefined`: the error ends the call. */
  readonly whyRefused: (error: unknown) => string | undefined;
  readonly onHandled: (index: number, handled: HandledItem) => void;
}

const PARALLEL = 8;

/** Each id once, in order. @returns as `twice` an id with two receivers: which of them is meant is unknown */
export function onceEach(items: readonly ManyItem[]): {
  readonly items: readonly ManyItem[];
  readonly twice: string | undefined;
} {
  const once = new Map<string, ManyItem>();
  let twice: string | undefined;
  for (const item of items) {
    const known = once.get(item.id);
    if (known === undefined) once.set(item.id, item);
    else if (JSON.stringify(known) !== JSON.stringify(item)) twice ??= item.id;
  }
  return { items: [...once.values()], twice };
}

/**
 * Carries the action out for each item. An item is the same command in each call with the same action, arguments and
 * reason: what was done is not done again, so an interrupted call is repeated as it was.
 * @throws what `whyRefused` does not explain: what was done by then is done
 */
export async function doMany(
  deps: ManyDeps,
  items: readonly ManyItem[],
  request: ManyRequest,
  { context, waitMs, signal, before, whyRefused, onHandled }: ManyOptions,
): Promise<void> {
  const dry = { ...deps, events: withoutAppends(deps.events) };
  const handle = async (item: ManyItem): Promise<HandledItem> => {
    const { id } = item;
    const run = async (of: ReassignDeps, commandId: string): Promise<Outcome> =>
      once(of, item, request, { ...partOf(context), commandId }, waitMs, signal);
    try {
      const [known] = await deps.subjects.find([supportTextSubject(id)]);
      const ran = known === undefined ? undefined : await commandOf(deps, known, request, item);
      const tried = await run(dry, ran ?? randomUUID()).catch((error: unknown) =>
        ifAppending(deps.events, item, request.dryRun, error),
      );
      if (request.dryRun || tried.outcome !== 'done') return { id, ...tried };
      await before?.();
      const [key = ''] = await deps.subjects.ids([supportTextSubject(id)]);
      return { id, ...(await run(deps, await commandOf(deps, key, request, item))) };
    } catch (error) {
      const why = whyRefused(error);
      if (why === undefined) throw error;
      return { id, outcome: 'refused', why };
    }
  };
  await inParallel(items.entries(), PARALLEL, async ([index, item]) => onHandled(index, await handle(item)), signal);
}

/**
 * The command's id, the same for each call with this action, arguments and reason. These may be personal, and could be
 * guessed from a hash under HASH_KEY alone: it is keyed by the data key of support's texts about the item, which ends
 * with an erasure (docs/personal-data.md#encrypted-fields).
 * @param subject id of the subject of these texts
 * @throws UnavailableError, also where it was erased a moment ago
 */
async function commandOf(
  { subjects, hash }: Pick<ManyDeps, 'subjects' | 'hash'>,
  subject: string,
  { action, reason }: ManyRequest,
  item: ManyItem,
): Promise<string> {
  const key = (await subjects.secrets([subject])).get(subject);
  if (key === undefined) throw new UnavailableError("support's texts about an item are being erased");
  return `many-${hash('command', keyedHash(key)('command', JSON.stringify([action, reason, item])))}`;
}

type Outcome = Omit<HandledItem, 'id'>;

/** @throws Refusal; UnavailableError */
async function once(
  deps: ReassignDeps,
  { id, receiver = {} }: ManyItem,
  { action, reason }: ManyRequest,
  context: CommandContext,
  ms: number,
  signal?: AbortSignal,
): Promise<Outcome> {
  if (action.name === 'refund') {
    const order = { transactionId: id, voided: action.voided, reason };
    const wait = signal === undefined ? { ms } : { ms, signal };
    const { refund, replayed } = await refundGifts(deps.events, context, order, wait);
    const why = whyNotRefunded(refund);
    return why === undefined ? { outcome: replayed ? 'unchanged' : 'done' } : { outcome: 'refused', why };
  }
  if (!isGiftId(id)) throw new Refusal('gift_not_found');
  const single = action.name === 'reassign' ? { ...action, receiver } : action;
  const { own, replayed } = await supportGift(deps, id, context, single, reason);
  return { outcome: own.length > 0 && !replayed ? 'done' : 'unchanged' };
}

class WouldAppend extends Error {
  readonly events: readonly NewEvent[];

  constructor(events: readonly NewEvent[]) {
    super('a dry run appends nothing');
    this.events = events;
  }
}

/** The log for a dry run: a command that comes to its append would have been done. */
const withoutAppends = (events: EventStore): EventStore => ({
  ...events,
  append: (_stream, appended) => Promise.reject(new WouldAppend(appended)),
});

/** What would come of an append. A refund that is taken on refunds nothing where no gift can be cancelled. */
async function ifAppending(events: EventStore, { id }: ManyItem, dryRun: boolean, error: unknown): Promise<Outcome> {
  if (!(error instanceof WouldAppend)) throw error;
  const requested = error.events.find(({ type }) => type === 'RefundRequested');
  if (requested === undefined) return { outcome: 'done' };
  const skipped = await skippedNow(events, id, requested.data as RefundRequested['data']);
  if (skipped === undefined) return { outcome: 'done' };
  return { outcome: 'refused', why: `nothing ${dryRun ? 'would be' : 'was'} refunded: ${whyNoneCancelled(skipped)}` };
}
