/**
 * Gifts and purchases as their streams have them, by the folds of their read models: for reads that find these behind
 * the log (docs/design.md#fresh-reads).
 */
import { type GiftIssued, giftStream } from '../domain/gift/events.js';
import { notificationStream } from '../domain/notification.js';
import { type GiftsPurchased, transactionStream } from '../domain/purchase/events.js';
import { inTurns } from '../lib/async/inTurns.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type DocumentStreams, foldDocument, type ReadModel } from '../runtime/readmodels/index.js';
import { type GiftDocument, asBought, giftsProjection } from './gifts.js';
import { type TransactionDocument, transactionIn, transactionsProjection } from './transactions.js';

type Reads = Pick<EventStore, 'read' | 'readAll'>;

export function transactionStreams(events: Pick<Reads, 'read'>): DocumentStreams<TransactionDocument> {
  return {
    of: transactionStream,
    isFinal: (document) => transactionsProjection.isFinal?.(document) === true,
    fold: async (id) => transactionIn(await events.read(transactionStream(id))),
  };
}

/** `model`: the read model of gifts, without read-your-writes. */
export function giftStreams(
  events: Reads,
  model: Pick<ReadModel<GiftDocument>, 'get' | 'folded'>,
): DocumentStreams<GiftDocument> {
  const unfolded = unfoldedPurchases(events, model);
  return {
    of: giftStream,
    async fold(id, shown) {
      const history = await events.read(giftStream(id));
      return history.length === 0 ? shown : giftIn(events, id, history);
    },
    // The purchase may have been folded since the read model was first read, so it is read again.
    search: async (id) => (await unfolded(id)) ?? model.get(id),
  };
}

/** `history`: events of an issued gift. `until`: a position in the log; default: its end. @throws UnavailableError */
export async function giftIn(
  events: Pick<Reads, 'read'>,
  id: string,
  history: readonly RecordedEvent[],
  until?: Position,
): Promise<GiftDocument> {
  const issued = history.find(({ type }) => type === 'GiftIssued');
  if (issued === undefined) throw new Error('a gift was written to and is not issued');
  const bought = asBought(issued.data as GiftIssued['data']);
  const known = await withReminders(events, id, history, until);
  return foldDocument(giftsProjection, known, id, bought) ?? bought;
}

/**
 * Adds the reminders sent up to a position of the log, which are not in the gift's stream.
 * @throws UnavailableError
 */
export async function withReminders(
  events: Pick<Reads, 'read'>,
  id: string,
  history: readonly RecordedEvent[],
  until?: Position,
): Promise<readonly RecordedEvent[]> {
  if (!history.some(({ type }) => type === 'ReminderDue')) return history;
  const notification = await events.read(notificationStream(id));
  const sent = notification.filter(
    ({ type, position }) => type === 'ReminderSent' && (until === undefined || position <= until),
  );
  return [...history, ...sent].sort((one, other) =>
    one.position === other.position ? 0 : one.position < other.position ? -1 : 1,
  );
}

/** Most gifts of unfolded purchases held in memory, which take some 30 MB. */
const MOST_GIFTS = 200_000;

interface UnfoldedPurchase {
  readonly event: RecordedEvent;
  readonly indexes: ReadonlyMap<string, number>;
}

/**
 * Finds gifts that are not issued and that the read model lacks: only their purchase tells of them, which their ids do
 * not name. Each purchase after the read model's progress is read once.
 */
function unfoldedPurchases(
  events: Pick<Reads, 'readAll'>,
  model: Pick<ReadModel<GiftDocument>, 'folded'>,
): (id: string) => Promise<GiftDocument | undefined> {
  let purchases: UnfoldedPurchase[] = [];
  let readTo: Position | undefined;

  const readOn = inTurns(async () => {
    const folded = await model.folded();
    purchases = purchases.filter(({ event }) => folded === undefined || event.position > folded);
    if (readTo === undefined || (folded !== undefined && folded > readTo)) readTo = folded;
    let gifts = purchases.reduce((sum, { indexes }) => sum + indexes.size, 0);
    const filter = { types: ['GiftsPurchased' satisfies GiftsPurchased['type']], streams: [transactionStream('')] };
    for await (const batch of events.readAll(readTo, filter)) {
      for (const event of batch.events) {
        const indexes = new Map(giftsProjection.documentIds(event).map((id, index) => [id, index]));
        gifts += indexes.size;
        if (gifts > MOST_GIFTS) throw new UnavailableError('gifts: the read model is too far behind the log');
        purchases.push({ event, indexes });
      }
      readTo = batch.position;
    }
  });

  return async (id) => {
    await readOn();
    for (const { event, indexes } of purchases) {
      const index = indexes.get(id);
      if (index !== undefined) return giftsProjection.evolve(undefined, event, id, index);
    }
    return undefined;
  };
}
