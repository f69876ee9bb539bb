/** What the event feed of each reader says of one gift, as acts of its history: complete, once, and in order. */
import { type Chain, chainsOf } from './chains.js';
import type { Leeway } from './finding.js';
import { type GiftAct, type Story, seenAct } from './giftActs.js';
import type { GiftEvent, GiftState } from './giftState.js';
import { type History, textField } from './history.js';
import type { ListEvents } from './operations.js';
import type { Pattern } from './pattern.js';
import type { GiftWorld } from './shown.js';

/** Types of events that requests to a gift make. Notifications and expiry come by themselves. */
const MODELLED = new Set(
  [
    'issued',
    'redeemed',
    'unredeemed',
    'claimed',
    'voucher_assigned',
    'cancelled',
    'blocked',
    'unblocked',
    'reassigned',
    'replaced',
    'extended',
  ].map((type) => `gift.${type}`),
);

/** Feeds that were read whole once nothing was written any more. */
export function wholeFeeds(history: History, { quietFrom = Infinity }: Leeway): Chain<ListEvents>[] {
  return chainsOf<ListEvents>(history, 'listEvents').filter((chain) => chain.complete && chain.sent >= quietFrom);
}

/** Whether a reader requested events of this type. */
export const requestsType = ({ operation: { types = [] } }: Chain<ListEvents>, type: string): boolean =>
  types.length === 0 || types.includes(type);

/** Each whole feed shows exactly the events of the gift that its reader may see (docs/api/events.md#event-feed). */
export function feedActs(world: GiftWorld, { feeds }: Story): GiftAct[] {
  const { gift } = world;
  return feeds.map(({ chain: feed, entries: all }) => {
    const entries = (all.get(gift.id) ?? []).filter((one) => MODELLED.has(textField(one, 'type') ?? ''));
    const expects = (state: GiftState): Pattern =>
      state.events
        .filter((event) => requestsType(feed, event.type) && isShown(event, world, feed.client))
        .map((event) => shownEvent(event, world));
    return seenAct(feed, entries, expects, () => `the event feed of ${feed.client} shows ${JSON.stringify(entries)}`);
  });
}

function isShown({ owners, merchant }: GiftEvent, { gift, installation }: GiftWorld, reader: string): boolean {
  if (reader.startsWith('client:') || reader === gift.buyer || owners.includes(reader)) return true;
  return merchant !== null && installation.users.get(reader)?.merchant === merchant;
}

function shownEvent({ type, data }: GiftEvent, { gift }: GiftWorld): Pattern {
  const own = { transaction_id: gift.transaction, gift_id: gift.id, by_support: '!' };
  return { id: '*', position: '*', created_at: '*', type, data: { ...own, ...data } };
}
