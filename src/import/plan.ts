import {
  type ReservationKind,
  accountStream,
  giveUpReservation,
  holderOf,
  reservationStream,
  takeReservation,
} from '../domain/account.js';
import { catalogueStream } from '../domain/catalogue.js';
import type { DomainEvent } from '../domain/decider.js';
import { type Entry, putEntry, retireEntry } from '../domain/entry.js';
import { addVoucherCode, withdrawVoucherCode } from '../domain/voucherCode.js';
import { type WalletToppedUp, walletStream } from '../domain/wallet.js';
import type { StreamAppend } from '../ports/eventStore.js';
import { inSlices } from '../lib/async/slices.js';
import { type ArrayName, type IdKind, KIND_OF_ARRAY } from './file.js';
import type { LogState, Stored } from './logState.js';
import type { SecretHashes } from './secrets.js';
import { reservedId, type Desired, type DesiredImport } from './desired.js';

export interface ImportChange {
  readonly action: 'add' | 'change' | 'retire';
  /** Array of the changed entry; `top_ups`: money put into a wallet. */
  readonly array: ArrayName | 'top_ups';
  /**
   * Id of the changed entry: a payment method's reference, a code's segment and hash, a top-up's `{reference}/{id}`,
   * else the entry's id.
   */
  readonly id: string;
  /** Names of the changed fields. */
  readonly fields?: readonly string[];
}

export interface PlannedAppend {
  readonly stream: string;
  readonly expected: StreamAppend['expected'];
  readonly events: readonly DomainEvent[];
  /** Reported changes; empty for reservations, which follow from their users. */
  readonly changes: readonly ImportChange[];
  /**
   * Types of events that must not be appended concurrently; absent: all types. A wallet in use is debited all the time.
   */
  readonly conflictsWith?: readonly string[];
}

export interface ImportPlan {
  /** Appends by phase; each phase starts once the previous one is in the log. */
  readonly phases: readonly (readonly PlannedAppend[])[];
  /** Number of entries that are in the log already. */
  readonly unchanged: number;
  /** Number of entries to retire. */
  readonly pruned: number;
}

interface PlanInput {
  readonly desired: DesiredImport;
  readonly log: LogState;
  readonly secrets: SecretHashes;
  /** Reason for which entries that are missing from the file are retired; absent: they stay. */
  readonly pruneReason?: string | undefined;
}

/** Order in which arrays are written: referenced entries come first, and codes and top-ups before what needs them. */
const ORDER = [
  'integrations',
  'merchants',
  'segments',
  'brands',
  'products',
  'stores',
  'categories',
  'users',
  'clients',
  'payment_methods',
] as const satisfies readonly ArrayName[];

const NONE: Stored<Entry<object>> = { revision: 'none', state: { status: 'none' } };

export async function planImport(input: PlanInput): Promise<ImportPlan> {
  const { desired, log, pruneReason } = input;
  const retired = pruneReason === undefined ? [] : await retirements(input, pruneReason);
  const prunedUsers = new Set(
    retired
      .flatMap(({ changes }) => changes)
      .filter(({ array }) => array === 'users')
      .map(({ id }) => id),
  );
  const reservations = [
    reservationMoves('username', input, prunedUsers),
    reservationMoves('phone', input, prunedUsers),
  ];
  const phases: PlannedAppend[][] = [
    reservations.flatMap(({ abandoned }) => abandoned),
    reservations.flatMap(({ taken }) => taken),
  ];
  let unchanged = 0;
  const codes = async (): Promise<PlannedAppend[]> => {
    const planned: PlannedAppend[] = [];
    await inSlices(desired.voucher_codes ?? [], ({ id, value }) => {
      const stored = log.codes.get(id);
      const events = addVoucherCode(stored?.state ?? { status: 'none' }, value);
      if (events.length === 0) unchanged += 1;
      else
        planned.push({
          stream: codeStream(id),
          expected: stored?.revision ?? 'none',
          events,
          changes: events.map((event) => changeOf('voucher_codes', id, event)),
        });
    });
    return planned;
  };
  for (const array of ORDER) {
    // An import may be interrupted anywhere. A product without the codes of its vouchers would give out generated ones,
    // which no till knows; an empty wallet would refuse its buyers.
    if (array === 'products') phases.push(await codes());
    if (array === 'payment_methods') phases.push(topUps(input));
    const phase: PlannedAppend[] = [];
    const entries: readonly Desired<object>[] = desired[array] ?? [];
    const stored = storedOf(log, array);
    await inSlices(entries, ({ id, value }) => {
      const { revision, state } = stored.get(id) ?? NONE;
      const events = putEntry(KIND_OF_ARRAY[array], state, withSecret(array, id, value, input.secrets));
      if (events.length === 0) unchanged += 1;
      else
        phase.push({
          stream: streamOf(array, id),
          expected: revision,
          events,
          changes: events.map((event) => changeOf(array, id, event)),
        });
    });
    phases.push(phase);
  }
  phases.push(retired);
  return { phases: phases.filter((phase) => phase.length > 0), unchanged, pruned: retired.length };
}

function storedOf(log: LogState, array: (typeof ORDER)[number]): ReadonlyMap<string, Stored<Entry<object>>> {
  return log.entries[KIND_OF_ARRAY[array]];
}

const codeStream = (id: string): string => `voucherCode-${id}`;

function streamOf(array: (typeof ORDER)[number], id: string): string {
  const kind: IdKind = KIND_OF_ARRAY[array];
  return kind === 'user' || kind === 'client' || kind === 'paymentMethod'
    ? accountStream(kind, id)
    : catalogueStream(kind, id);
}

function withSecret(array: ArrayName, id: string, value: object, secrets: SecretHashes): object {
  if (array === 'users') return { ...value, password_hash: secrets.get(`user-${id}`) };
  return array === 'clients' ? { ...value, secret_hash: secrets.get(`client-${id}`) } : value;
}

function changeOf(array: ArrayName, id: string, event: DomainEvent): ImportChange {
  if (event.type.endsWith('Changed')) return { action: 'change', array, id, fields: Object.keys(event.data) };
  return { action: event.type.endsWith('Added') ? 'add' : 'retire', array, id };
}

/** Retires live entries that are missing from the file's arrays; entries that refer to others go first. */
async function retirements({ desired, log }: PlanInput, reason: string): Promise<PlannedAppend[]> {
  const planned: PlannedAppend[] = [];
  async function retireMissing<S>(
    array: ArrayName,
    stored: ReadonlyMap<string, Stored<S>>,
    streamName: (id: string) => string,
    retire: (state: S) => readonly DomainEvent[],
  ): Promise<void> {
    const entries: readonly Desired<object>[] | undefined = desired[array];
    if (entries === undefined) return;
    const kept = new Set(entries.map(({ id }) => id));
    await inSlices(stored, ([id, { revision, state }]) => {
      const events = kept.has(id) ? [] : retire(state);
      if (events.length > 0)
        planned.push({
          stream: streamName(id),
          expected: revision,
          events,
          changes: [{ action: 'retire', array, id }],
        });
    });
  }
  await retireMissing('voucher_codes', log.codes, codeStream, (state) => withdrawVoucherCode(state, reason));
  for (const array of ORDER.toReversed())
    await retireMissing(
      array,
      storedOf(log, array),
      (id) => streamOf(array, id),
      (state) => retireEntry(KIND_OF_ARRAY[array], state, reason),
    );
  return planned;
}

/** Every reservation is given up before any is taken, so that two users can swap names or numbers. */
function reservationMoves(
  kind: ReservationKind,
  { desired, log }: PlanInput,
  prunedUsers: ReadonlySet<string>,
): { abandoned: PlannedAppend[]; taken: PlannedAppend[] } {
  const users = desired.users ?? [];
  const reserved = new Map(users.map((user) => [user.id, reservedId(kind, user)]));
  const stored = log.reservations[kind];
  const abandoned: PlannedAppend[] = [];
  const free = new Set<string>();
  for (const [id, { revision, state }] of stored) {
    const holder = holderOf(state);
    if (holder === undefined) continue;
    if (!prunedUsers.has(holder) && (!reserved.has(holder) || reserved.get(holder) === id)) continue;
    abandoned.push({
      stream: reservationStream(kind, id),
      expected: revision,
      events: giveUpReservation(kind, state, holder),
      changes: [],
    });
    free.add(id);
  }
  const taken: PlannedAppend[] = [];
  for (const user of users) {
    const id = reservedId(kind, user);
    if (id === undefined) continue;
    const { revision, state } = stored.get(id) ?? { revision: 'none', state: [] };
    const events = takeReservation(kind, state, user.id);
    const expected = free.has(id) && typeof revision === 'number' ? revision + 1 : revision;
    if (events.length > 0) taken.push({ stream: reservationStream(kind, id), expected, events, changes: [] });
  }
  return { abandoned, taken };
}

function topUps({ desired, log }: PlanInput): PlannedAppend[] {
  return (desired.payment_methods ?? []).flatMap(({ id, topUps: requested }): PlannedAppend[] => {
    const stored = log.wallets.get(id);
    const fresh = requested.filter((topUp) => stored?.state.has(topUp.id) !== true);
    if (fresh.length === 0) return [];
    const events: WalletToppedUp[] = fresh.map((topUp) => ({
      type: 'WalletToppedUp',
      data: { top_up_id: topUp.id, amount: topUp.amount },
    }));
    const changes = fresh.map((topUp): ImportChange => ({ action: 'add', array: 'top_ups', id: `${id}/${topUp.id}` }));
    return [
      {
        stream: walletStream(id),
        expected: stored?.revision ?? 'none',
        events,
        changes,
        conflictsWith: ['WalletToppedUp'],
      },
    ];
  });
}
