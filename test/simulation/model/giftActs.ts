/** The acts of one gift, for the search of an order: requests to it, what happens to it, and what lists show of it. */
import { type WholeList, wholeLists } from './chains.js';
import type { Leeway } from './finding.js';
import { excludedBy } from './foresight.js';
import { type Happening, apply, happen, onEachDay } from './giftModel.js';
import { type GiftFacts, type GiftState, dayAfter } from './giftState.js';
import { type History, type Observation, describe, field, grouped, listField, textField, toldBy } from './history.js';
import { isListed, merchantEntries } from './listedGifts.js';
import type { Act } from './linearizable.js';
import type { Installation, User } from './installation.js';
import { type SeenKey, scopeOf, seenKeys } from './keys.js';
import { type GiftOperation, type ListEvents, isRead } from './operations.js';
import { type Pattern, bind, describeExpected, matchValue, matches } from './pattern.js';
import type { KnownPurchase } from './purchases.js';
import { type KnownRefund, refundsOf } from './refunds.js';
import { type GiftWorld, shownGift } from './shown.js';

/** An act, and the same where its end is not seen yet: a write may have had its effect, a read matters no more. */
export interface GiftAct extends Act<GiftState> {
  readonly cut: Act<GiftState> | undefined;
}

/** A request to a gift. */
export interface GiftObservation extends Observation {
  readonly operation: GiftOperation;
}

const LISTS = ['listGifts', 'listMerchantRedemptions'] as const;

/** A gift in an answer about its purchase. */
interface ShownGift {
  readonly user: User;
  readonly sent: number;
  readonly answered: number;
  readonly value: unknown;
  readonly describe: () => string;
}

/** What of a history concerns gifts, gathered once for all of them. */
export interface Story {
  /** Last valid days that support requested, by gift. */
  readonly extensions: ReadonlyMap<string, readonly string[]>;
  /** The number of each observation. */
  readonly numbers: ReadonlyMap<Observation, number>;
  /** By transaction. */
  readonly refunds: ReadonlyMap<string, readonly KnownRefund[]>;
  readonly shown: ReadonlyMap<string, readonly ShownGift[]>;
  /** Entries by gift. */
  readonly lists: readonly WholeList[];
  readonly feeds: readonly WholeList<ListEvents>[];
  /** By scope. */
  readonly keys: ReadonlyMap<string, SeenKey>;
  readonly leeway: Leeway;
}

export function storyOf(history: History, installation: Installation, leeway: Leeway): Story {
  const numbers = new Map(history.map((observation, index) => [observation, index]));
  const extensions = history.flatMap(({ operation }) => (operation.kind === 'extend' ? [operation] : []));
  return {
    extensions: new Map(
      [...grouped(extensions, ({ gift }) => gift)].map(([gift, some]) => [gift, some.map((one) => one.expiryDate)]),
    ),
    numbers,
    refunds: grouped(refundsOf(history), ({ transaction }) => transaction),
    shown: grouped(
      history.flatMap((one) => shownGifts(one, installation, numbers, leeway)),
      ({ value }) => textField(value, 'id'),
    ),
    lists: LISTS.flatMap((kind) =>
      wholeLists(history, kind, leeway, (one) => textField(one, kind === 'listGifts' ? 'id' : 'gift_id')),
    ),
    feeds: wholeLists<ListEvents>(history, 'listEvents', leeway, (one) => textField(one, 'data', 'gift_id')),
    keys: seenKeys(history),
    leeway,
  };
}

/** What answers about purchases show of gifts. */
function shownGifts(
  observation: Observation,
  { users }: Installation,
  numbers: Story['numbers'],
  { mayBeStale = () => false }: Leeway,
): ShownGift[] {
  const { operation, client, sent, answered } = observation;
  const answer = toldBy(observation);
  const user = users.get(client);
  if (answer === undefined || answered === undefined || user === undefined || answer.status >= 300) return [];
  if (answer.headers['idempotent-replayed'] !== undefined) return [];
  if (!['purchase', 'getTransaction', 'listTransactionGifts'].includes(operation.kind)) return [];
  if (isRead(operation) && mayBeStale(sent, answered)) return [];
  const data = field(answer.body, 'data');
  const values = Array.isArray(data) ? (data as unknown[]) : listField(answer.body, 'embedded', 'gifts');
  return values.map((value) => ({
    user,
    sent,
    answered,
    value,
    describe: () => `#${numbers.get(observation)} ${client} ${operation.kind} shows ${JSON.stringify(value)}`,
  }));
}

const inOneLine = (observation: Observation, { numbers }: Story): string =>
  describe(observation, numbers.get(observation) ?? -1);

/** A request to the gift; `undefined` for one that had no effect and shows nothing. */
export function requestAct(
  world: GiftWorld,
  observation: GiftObservation,
  all: readonly GiftObservation[],
  story: Story,
): GiftAct | undefined {
  const { operation, client, sent, answered } = observation;
  const { effectMs, mayBeStale = () => false } = story.leeway;
  const key = story.keys.get(scopeOf(observation) ?? '');
  const request = {
    client,
    operation,
    keyInProgress: keyInProgress(observation, all, story.leeway),
    keyIsShared: (key?.requests ?? 0) > 1,
  };
  const reads = isRead(operation);
  const effect: Act<GiftState> = {
    from: sent,
    to: undefined,
    required: false,
    reads: false,
    apply: (state) => apply(world, state, request).map((one) => one.state),
    describe: () => inOneLine(observation, story),
    expects: (state) =>
      apply(world, state, request)
        .map(({ answer }) => describeExpected(answer))
        .join(' or '),
  };
  const answer = toldBy(observation);
  if (answer === undefined) {
    const certainlyNone = observation.answer !== undefined && [409, 429].includes(observation.answer.status);
    if (reads || certainlyNone || key?.decided === true) return undefined;
    const to = effectMs === undefined ? undefined : sent + effectMs;
    const mayBeNoted = { ...request, refusalMatters: key?.matters };
    const maybe = {
      ...effect,
      effect: JSON.stringify([
        client,
        request.keyIsShared || operation.kind === 'redeem' ? operation : unkeyed(operation),
      ]),
      apply: (state: GiftState) => apply(world, state, mayBeNoted).map((one) => one.state),
    };
    return { ...maybe, to, cut: maybe };
  }
  if (reads && mayBeStale(sent, answered ?? Infinity)) return undefined;
  // Another request with the key was running; `keys.ts` holds that there was one.
  if (operation.kind === 'lookUpKey' && textField(answer.body, 'data', 'status') === 'running') return undefined;
  if (answer.headers['error-code'] === 'idempotency_key_reused' && keyWasHeld(observation, all, story.leeway))
    return undefined;
  return {
    ...effect,
    to: answered,
    required: true,
    // A refusal changes nothing, unless its key keeps it for another request.
    reads: reads || (answer.status >= 400 && !request.keyIsShared),
    apply: (state) =>
      apply(world, state, request).flatMap(({ state: next, answer: expected }) => {
        const bindings = matches(expected, answer);
        return bindings === undefined ? [] : [bind(next, bindings)];
      }),
    cut: reads ? undefined : effect,
    excludes: excludedBy(client, operation, answer, request.keyInProgress),
  };
}

/** Whether another request held the key at any time of this one, and may have decided nothing. */
function keyWasHeld(
  observation: GiftObservation,
  all: readonly GiftObservation[],
  { answersLostMs = 0 }: Leeway,
): boolean {
  const { sent, answered = Infinity } = observation;
  const scope = scopeOf(observation);
  return all.some(
    (one) =>
      one !== observation &&
      scopeOf(one) === scope &&
      toldBy(one) === undefined &&
      one.sent <= answered &&
      (one.answered ?? Infinity) + answersLostMs >= sent,
  );
}

const unkeyed = (operation: GiftOperation): GiftOperation => ({ ...operation, key: undefined }) as GiftOperation;

/** Whether a redemption with the key that is looked up was in progress at any time of the look-up. */
function keyInProgress(
  { client, operation, sent, answered }: GiftObservation,
  all: readonly GiftObservation[],
  { effectMs = Infinity }: Leeway,
): boolean {
  if (operation.kind !== 'lookUpKey') return false;
  return all.some(
    (one) =>
      one.client === client &&
      one.operation.kind === 'redeem' &&
      one.operation.key === operation.of &&
      one.sent <= (answered ?? Infinity) &&
      (toldBy(one) === undefined ? one.sent + effectMs : (one.answered ?? Infinity)) >= sent,
  );
}

/** What happens to a gift by itself: its charge settles, days begin, refunds cancel it. */
export function happeningActs({ gift }: GiftWorld, purchase: KnownPurchase, story: Story): GiftAct[] {
  const { extensions, refunds, leeway } = story;
  const { clockMs, skewMs = 0 } = leeway;
  const acts: GiftAct[] = [];
  const { sent, charged, declined } = purchase;
  if (declined === undefined) acts.push(happeningAct(gift, { kind: 'charged' }, sent, charged));
  if (charged === undefined) acts.push(happeningAct(gift, { kind: 'declined' }, sent, declined));
  const lastDays = (extensions.get(gift.id) ?? []).filter((day) => day > gift.boughtOn);
  for (const lastDay of new Set([dayAfter(gift.boughtOn, gift.product.validDays), ...lastDays])) {
    const day = dayAfter(lastDay, 1);
    const midnight = Date.parse(`${day}T00:00:00Z`);
    const [first, last] = [midnight - clockMs, midnight + clockMs];
    const everywhere = skewMs === 0;
    acts.push(happeningAct(gift, { kind: 'day', day, everywhere }, first, everywhere ? last : first));
    if (!everywhere) acts.push(happeningAct(gift, { kind: 'day everywhere' }, last, last));
  }
  return [...acts, ...(refunds.get(gift.transaction) ?? []).flatMap((refund) => refundActs(gift, refund))];
}

/** @param to `undefined`: it may happen or not */
function happeningAct(gift: GiftFacts, happening: Happening, from: number, to: number | undefined): GiftAct {
  const cut: Act<GiftState> = {
    from,
    to: undefined,
    required: false,
    reads: false,
    apply(state) {
      const next = happen(gift, state, happening);
      return next === undefined ? [] : [next];
    },
    describe: () => `happens: ${JSON.stringify(happening)}`,
    expects: () => 'it not to happen now',
  };
  return { ...cut, to, required: to !== undefined, reads: happening.kind === 'not refunded', cut };
}

/** What a refund of the gift's purchase does to it, as far as the answer says it. */
function refundActs(gift: GiftFacts, refund: KnownRefund): GiftAct[] {
  const { requested, gifts, redeemed, sent, answered, accepted } = refund;
  if (requested.length > 0 && !requested.includes(gift.id)) return [];
  if (gifts === undefined) return [happeningAct(gift, { kind: 'refunded' }, sent, undefined)];
  if (gifts.includes(gift.id)) return [happeningAct(gift, { kind: 'refunded' }, sent, accepted ? answered : undefined)];
  return redeemed.includes(gift.id) ? [happeningAct(gift, { kind: 'not refunded' }, sent, answered)] : [];
}

/** A read of something that follows from the state. @param expects what was to be seen in a state */
export function seenAct(
  { sent, answered }: { readonly sent: number; readonly answered: number },
  value: unknown,
  expects: (state: GiftState) => Pattern,
  describeAct: () => string,
): GiftAct {
  return {
    from: sent,
    to: answered,
    required: true,
    reads: true,
    apply(state) {
      for (const one of onEachDay(state)) {
        const bindings = matchValue(expects(one), value);
        if (bindings !== undefined) return [bind(state, bindings)];
      }
      return [];
    },
    describe: describeAct,
    expects: (state) => JSON.stringify(expects(state)),
    cut: undefined,
  };
}

/** What answers about its purchase show of the gift: all that the log held (docs/api/conventions.md#gift-position). */
export function embeddedActs(world: GiftWorld, { shown }: Story): GiftAct[] {
  return (shown.get(world.gift.id) ?? []).map((one) =>
    seenAct(one, one.value, (state) => shownGift(world, state, one.user), one.describe),
  );
}

/** What lists show of the gift once read models are current. Before that they may be late. */
export function listedActs(world: GiftWorld, { lists }: Story): GiftAct[] {
  const { gift, installation } = world;
  return lists.map(({ chain, entries }) => {
    const { client, operation } = chain;
    const user = installation.users.get(client);
    if (user === undefined) throw new Error(`no user ${client}`);
    const shown = entries.get(gift.id) ?? [];
    const expects = (state: GiftState): Pattern => {
      if (operation.kind !== 'listGifts') return merchantEntries(world, state, user);
      return isListed(world, state, user, operation) ? [shownGift(world, state, user)] : [];
    };
    return seenAct(
      chain,
      shown,
      expects,
      () => `${client} ${JSON.stringify(operation)} shows ${JSON.stringify(shown)}`,
    );
  });
}
