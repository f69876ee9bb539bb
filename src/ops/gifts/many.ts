/** One action of support for many gifts or purchases (docs/support.md#many-at-once). */
import { type CommandContext, partOf } from '../../commands/context.js';
import type { NewReceiver, ReassignDeps } from '../../commands/reassignGift.js';
import { refundGifts } from '../../commands/refundGifts.js';
import { isGiftId } from '../../domain/giftIds.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { Refusal } from '../../domain/refusal.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore } from '../../ports/eventStore.js';
import { whyNotRefunded } from '../refunds/refundView.js';
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

export interface ManyDeps extends ReassignDeps {
  readonly hash: KeyedHash;
}

export interface ManyOptions {
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
    const text = JSON.stringify([request.action, request.reason, item]);
    const own = { ...partOf(context), commandId: `many-${deps.hash('command', text)}` };
    const run = async (of: ReassignDeps): Promise<Outcome> => once(of, item, request, own, waitMs, signal);
    const tried = async (): Promise<Outcome> => run(dry).catch(doneIfAppending);
    try {
      if (request.dryRun) return { id, ...(await tried()) };
      if (before !== undefined && (await tried()).outcome === 'done') await before();
      return { id, ...(await run(deps)) };
    } catch (error) {
      const why = whyRefused(error);
      if (why === undefined) throw error;
      return { id, outcome: 'refused', why };
    }
  };
  await inParallel(items.entries(), PARALLEL, async ([index, item]) => onHandled(index, await handle(item)), signal);
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

class WouldAppend extends Error {}

/** The log for a dry run: a command that comes to its append would have been done. */
const withoutAppends = (events: EventStore): EventStore => ({
  ...events,
  append: () => Promise.reject(new WouldAppend()),
});

function doneIfAppending(error: unknown): Outcome {
  if (error instanceof WouldAppend) return { outcome: 'done' };
  throw error;
}
