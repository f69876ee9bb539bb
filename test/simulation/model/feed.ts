/**
 * The event feed as a whole (docs/api/events.md): every reader sees events in one order, each once, none skipped between
 * pages, and in the order in which answers came. What it says of each gift and purchase is held against their models.
 */
import { type Chain, chainsOf, entriesOf } from './chains.js';
import { wholeFeeds } from './feedActs.js';
import type { Finding, Leeway } from './finding.js';
import { type History, type Observation, describe, field, textField } from './history.js';
import type { ListEvents } from './operations.js';

/** Fields of `data` by type (docs/api/events.md#event-types), beside the ids of purchase and gift. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  'transaction.created': ['replaces', 'send_at'],
  'transaction.rescheduled': ['send_at'],
  'transaction.refunded': ['refund_id'],
  'transaction.refund_failed': ['refund_id'],
  'gift.redeemed': ['redemption_id', 'location_id'],
  'gift.unredeemed': ['redemption_id', 'location_id', 'by_support'],
  'gift.replaced': ['replaced_by'],
  'gift.voucher_assigned': ['voucher_id'],
  'gift.extended': ['expires_on'],
  'gift.expiring': ['expires_on'],
  'gift.expired': ['expires_on'],
  'gift.blocked': ['blocked'],
  'gift.unblocked': ['blocked'],
};

/** Types of which there is one for each purchase or gift. */
const ONCE = new Set([
  'transaction.created',
  'transaction.charged',
  'transaction.declined',
  'gift.issued',
  'gift.claimed',
  'gift.voucher_assigned',
  'gift.replaced',
]);

const finding = (text: string, ...events: readonly unknown[]): Finding => ({
  rule: 'event feed',
  text: [text, ...events.slice(0, 10).map((event) => `  ${JSON.stringify(event)}`)].join('\n'),
});

const idOf = (event: unknown): string => textField(event, 'id') ?? '';
const typeOf = (event: unknown): string => textField(event, 'type') ?? '';

/** Findings about feeds. */
export function checkFeeds(history: History, leeway: Leeway): Finding[] {
  const chains = chainsOf<ListEvents>(history, 'listEvents');
  const whole = wholeFeeds(history, leeway);
  return [
    ...chains.flatMap(checkChain),
    ...checkOneOrder(chains, whole),
    ...checkBuyers(whole, history),
    ...whole.flatMap((feed) => checkSegments(chains, feed)),
    ...checkTimes(whole, history, leeway),
  ];
}

/** Each event is there once, with the fields of its type and no others. */
function checkChain(chain: Chain<ListEvents>): Finding[] {
  const events = entriesOf(chain);
  const seen = new Set<string>();
  const once = new Set<string>();
  const findings: Finding[] = [];
  for (const event of events) {
    if (seen.has(idOf(event))) {
      findings.push(finding(`The feed of ${chain.client} shows an event twice.`, event));
      continue;
    }
    seen.add(idOf(event));
    const type = typeOf(event);
    const subject = `${type} ${textField(event, 'data', type.startsWith('gift.') ? 'gift_id' : 'transaction_id')}`;
    if (ONCE.has(type) && once.has(subject))
      findings.push(finding(`The feed of ${chain.client} shows what happens once a second time.`, event));
    once.add(subject);
    const known = type.startsWith('gift.') ? ['transaction_id', 'gift_id'] : ['transaction_id', 'reference_id'];
    const allowed = [...known, ...(FIELDS[type] ?? [])];
    const names = Object.keys((field(event, 'data') as object | undefined) ?? {});
    if (names.some((name) => !allowed.includes(name)))
      findings.push(finding(`An event of the type ${type} has a field that the documents don't name.`, event));
  }
  for (const { data, limit = 100 } of chain.pages)
    if (data.length > limit) findings.push(finding(`A page has more than ${limit} events.`));
  return findings;
}

/** All feeds show events in the same order, and each event alike. */
function checkOneOrder(chains: readonly Chain<ListEvents>[], whole: readonly Chain<ListEvents>[]): Finding[] {
  const reference = whole.find(isReference);
  if (reference === undefined) return [];
  const places = new Map(
    entriesOf(reference).map((event, index) => [idOf(event), { index, text: JSON.stringify(event) }]),
  );
  return chains.flatMap((chain) => {
    let last = -1;
    for (const event of entriesOf(chain)) {
      const place = places.get(idOf(event));
      if (place === undefined)
        return [finding(`The feed of ${chain.client} has an event that the feed of ${reference.client} lacks.`, event)];
      if (place.index < last) return [finding(`The feed of ${chain.client} has another order.`, event)];
      if (place.text !== JSON.stringify(event))
        return [finding(`The feed of ${chain.client} shows an event otherwise.`, event, JSON.parse(place.text))];
      last = place.index;
    }
    return [];
  });
}

/** A buyer sees all that happens to the purchase and its gifts. */
function checkBuyers(whole: readonly Chain<ListEvents>[], history: History): Finding[] {
  const reference = whole.find(isReference);
  if (reference === undefined) return [];
  const buyers = new Map(
    history.flatMap(({ client, operation, answer }): [string, string][] => {
      const id = textField(answer?.body, 'data', 'id');
      return operation.kind === 'purchase' && id !== undefined ? [[id, client]] : [];
    }),
  );
  return whole.flatMap((feed) => {
    if (feed.operation.types !== undefined || isReference(feed)) return [];
    const seen = new Set(entriesOf(feed).map(idOf));
    const missing = entriesOf(reference).filter(
      (event) => buyers.get(textField(event, 'data', 'transaction_id') ?? '') === feed.client && !seen.has(idOf(event)),
    );
    return missing.length === 0
      ? []
      : [finding(`The feed of ${feed.client} lacks events of own purchases.`, ...missing)];
  });
}

/** The feed that shows all events: that of the API client through which all users are logged in. */
const isReference = ({ client, operation }: Chain<ListEvents>): boolean =>
  client.startsWith('client:') && operation.types === undefined;

/** What was read earlier is a part of the same reader's whole feed, without a gap. */
function checkSegments(chains: readonly Chain<ListEvents>[], whole: Chain<ListEvents>): Finding[] {
  const all = entriesOf(whole);
  const ids = all.map(idOf);
  const indexes = new Map(ids.map((id, index) => [id, index]));
  return chains.flatMap((chain) => {
    if (chain === whole || chain.client !== whole.client) return [];
    if (JSON.stringify(chain.operation.types) !== JSON.stringify(whole.operation.types)) return [];
    const read = entriesOf(chain).map(idOf);
    const [first] = read;
    if (first === undefined) return [];
    const begins = chain.operation.after === undefined ? 0 : (indexes.get(first) ?? -1);
    const gap = read.findIndex((id, index) => ids[begins + index] !== id);
    return gap < 0
      ? []
      : [finding(`The feed of ${chain.client} skipped an event while it was read.`, all[begins + gap])];
  });
}

/** The request that made an event, as far as the event names it. */
function makersOf(history: History): Map<string, Observation> {
  const makers = new Map<string, Observation>();
  for (const observation of history) {
    const { operation, answer, answered } = observation;
    if (answer === undefined || answered === undefined || answer.headers['idempotent-replayed'] !== undefined) continue;
    const redemption = textField(answer.body, 'data', 'id') ?? '';
    if (operation.kind === 'redeem' && answer.status === 201) makers.set(`gift.redeemed ${redemption}`, observation);
    if (operation.kind === 'unredeem' && answer.status === 200 && !operation.redemption.startsWith('key:'))
      makers.set(`gift.unredeemed ${redemption}`, observation);
    if (operation.kind === 'purchase' && (answer.status === 201 || answer.status === 402))
      makers.set(`transaction.created ${operation.order}`, observation);
  }
  return makers;
}

/** Of two answers of which one came before the other request was sent, the events come in this order, at their times. */
function checkTimes(feeds: readonly Chain<ListEvents>[], history: History, { clockMs }: Leeway): Finding[] {
  const makers = makersOf(history);
  const numbers = new Map(history.map((observation, index) => [observation, index]));
  const findings: Finding[] = [];
  const line = (one: Observation): string => describe(one, numbers.get(one) ?? -1);
  for (const feed of feeds) {
    let latest: Observation | undefined;
    for (const event of entriesOf(feed)) {
      const subject = textField(event, 'data', 'redemption_id') ?? textField(event, 'data', 'reference_id') ?? '';
      const maker = makers.get(`${typeOf(event)} ${subject}`);
      if (maker?.answered === undefined || field(event, 'data', 'replaces') !== undefined) continue;
      if (latest !== undefined && maker.answered < latest.sent)
        findings.push(finding(`The feed of ${feed.client} has these in the other order:`, line(latest), line(maker)));
      if (latest === undefined || maker.sent > latest.sent) latest = maker;
      const at = Date.parse(textField(event, 'created_at') ?? '');
      if (!(at >= maker.sent - clockMs - 1 && at <= maker.answered + clockMs))
        findings.push(finding(`An event has another time than the request that made it.`, event, line(maker)));
    }
  }
  return findings;
}
