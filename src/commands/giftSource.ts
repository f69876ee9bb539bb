/** A gift, read from its stream or, before it is issued, from its purchase. */
import { fold } from '../domain/decider.js';
import { type GiftEvent, type GiftIssued, giftStream } from '../domain/gift/events.js';
import { type IssuedGift, giftAggregate } from '../domain/gift/state.js';
import type { GiftFacts } from '../domain/gift/decisions.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';
import type { Source, StreamState } from './transact.js';

export interface FoundGift {
  readonly gift: IssuedGift;
  readonly payment: GiftFacts['payment'];
  /** Issue of a gift that is paid for and not issued yet; it is appended with the first other event. */
  readonly issue?: GiftIssued;
}

/** `unissued` is called where the stream is empty. */
export async function giftOf(
  history: readonly RecordedEvent[],
  unissued: () => FoundGift | Promise<FoundGift>,
): Promise<FoundGift> {
  const gift = fold(giftAggregate, history);
  return gift.status === 'none' ? unissued() : { gift, payment: 'charged' };
}

export function giftToIssue(issue: GiftIssued, payment: GiftFacts['payment']): FoundGift {
  const gift: IssuedGift = { status: 'issued', issued: issue.data, redemptions: [] };
  return payment === 'charged' ? { gift, payment, issue } : { gift, payment };
}

/** `known`: the stream as just read, in place of the first read. */
export function giftSource(
  events: Pick<EventStore, 'read'>,
  giftId: string,
  unissued: () => FoundGift | Promise<FoundGift>,
  known?: StreamState<FoundGift>,
): Source<FoundGift> {
  const stream = giftStream(giftId);
  let first = known;
  return {
    kind: 'gift',
    read: async () => {
      const found = first ?? (await readGift(events, stream, unissued));
      first = undefined;
      return found;
    },
  };
}

async function readGift(
  events: Pick<EventStore, 'read'>,
  stream: string,
  unissued: () => FoundGift | Promise<FoundGift>,
): Promise<StreamState<FoundGift>> {
  const history = await events.read(stream);
  const revision = history.at(-1)?.revision ?? 'none';
  return { stream, history, revision, state: await giftOf(history, unissued) };
}

/** Puts a missing issue before the decided events. */
export function withIssue({ issue }: FoundGift, decided: readonly GiftEvent[]): readonly GiftEvent[] {
  return decided.length > 0 && issue !== undefined ? [issue, ...decided] : decided;
}
