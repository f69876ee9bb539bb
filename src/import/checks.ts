/** Checks beyond shapes: entries must agree with each other and with the log. */
import { type ReservationKind, holderOf } from '../domain/account.js';
import { normalisePhoneNumber } from '../domain/phoneNumber.js';
import { inSlices } from '../lib/async/slices.js';
import type { FaultCollector } from './faults.js';
import { ARRAY_NAMES, type ArrayName, type IdKind, KIND_OF_ARRAY, REFERENCES } from './file.js';
import { checkGivenHashes } from './givenHashes.js';
import type { LogState } from './logState.js';
import { idField, type Shaped } from './shapes.js';
import {
  reservedId,
  type Desired,
  type DesiredImport,
  type DesiredPaymentMethod,
  type DesiredUser,
} from './desired.js';
import { ID_PATTERN } from './schemas.js';

/** Maximum size of an entry: with its metadata it must fit into an event of 1,000,000 bytes. */
const MAX_ENTRY_BYTES = 900_000;

/** Prefixes of names that are no users: command-line users and parts of the service in histories, and phone numbers. */
const RESERVED_PREFIXES = /^(?:cli|system|phone):/i;

interface CheckInput extends ReferenceInput {
  readonly desired: DesiredImport;
  readonly erasedUsers?: ReadonlySet<string> | undefined;
}

export async function checkEntries(input: CheckInput, faults: FaultCollector): Promise<void> {
  const { desired } = input;
  await checkReferences(input, faults);
  for (const array of ARRAY_NAMES) await checkUnique(array, desired[array] ?? [], faults);

  await inSlices(desired.brands ?? [], ({ index, value }) => {
    if (value.consolidated === 1 && value.consolidated_products.length > 0)
      faults.add('brands', index, '.consolidated_products', 'must be empty for a consolidated brand');
  });
  await inSlices(desired.users ?? [], (user) => {
    const { index, id, secret, usernameFaulty } = user;
    if (RESERVED_PREFIXES.test(id))
      faults.add(
        'users',
        index,
        '.id',
        'must not start with cli:, system: or phone:, by which others than users are named',
      );
    const known = input.log.entries.user.get(id);
    if (known === undefined ? input.erasedUsers?.has(id) === true : known.state.status === 'erased')
      faults.add('users', index, '.id', 'is that of an erased user: somebody who comes back gets another id');
    if (usernameFaulty)
      faults.add(
        'users',
        index,
        '.username',
        'must be of letters, digits and visible ASCII characters, in parts with one space between (RFC 8265 3.1)',
      );
    if (secret === undefined) faults.add('users', index, '.password', 'give one of password and password_hash');
    if (isPhoneFaulty(user, input.log))
      faults.add('users', index, '.phone_number', 'is not a valid mobile phone number');
  });
  await inSlices(desired.clients ?? [], ({ index, secret }) => {
    if (secret === undefined) faults.add('clients', index, '.secret', 'give one of secret and secret_hash');
  });
  await checkGivenHashes(desired, input.log, faults);
  await inSlices(desired.payment_methods ?? [], (method) => checkWallet(method, input.log, faults));
  await checkVouchers(desired, input.log, faults);
  checkReservations('username', input, faults);
  checkReservations('phone', input, faults);
}

const WITH_PIN = 'alpha/pin';

/** A code without the PIN that its segment's vouchers show is worth nothing to whoever gets it. */
async function checkVouchers(desired: DesiredImport, log: LogState, faults: FaultCollector): Promise<void> {
  const types = new Map<string, string>();
  await inSlices(desired.segments ?? [], ({ index, id, value }) => {
    types.set(id, value.voucherType);
    const stored = log.entries.segment.get(id)?.state ?? { status: 'none' };
    // Vouchers that are out are shown by the segment's present type: they would lose their PIN, or have an empty one.
    if (stored.status !== 'none' && (stored.value.voucherType === WITH_PIN) !== (value.voucherType === WITH_PIN))
      faults.add(
        'segments',
        index,
        '.voucherType',
        `cannot change from "${stored.value.voucherType}", since only vouchers of ${WITH_PIN} have a PIN: give a new segment another id`,
      );
  });
  const typeOf = (segmentId: string): string | undefined => {
    const stored = log.entries.segment.get(segmentId)?.state ?? { status: 'none' };
    return types.get(segmentId) ?? (stored.status === 'none' ? undefined : stored.value.voucherType);
  };
  await inSlices(desired.voucher_codes ?? [], ({ index, id, value }) => {
    const stored = log.codes.get(id)?.state;
    if (stored?.status === 'assigned') {
      if (stored.pin !== value.pin)
        faults.add('voucher_codes', index, '.pin', 'differs from the one that a gift has already got');
    } else if (value.pin === null && typeOf(value.segment_id) === WITH_PIN) {
      faults.add('voucher_codes', index, '.pin', `is required: segment "${value.segment_id}" is of ${WITH_PIN}`);
    }
  });
}

async function checkUnique(
  array: ArrayName,
  entries: readonly Desired<unknown>[],
  faults: FaultCollector,
): Promise<void> {
  const first = new Map<string, number>();
  const field = `.${idField(array)}`;
  await inSlices(entries, ({ id, index, value }) => {
    const before = first.get(id);
    if (before === undefined) first.set(id, index);
    else faults.add(array, index, field, `is the same as ${array}[${before}]${field}`);
    if (Buffer.byteLength(JSON.stringify(value)) > MAX_ENTRY_BYTES)
      faults.add(array, index, '', `is larger than ${MAX_ENTRY_BYTES} bytes`);
  });
}

/** A number that the user has already stays: it was valid when it was taken. */
function isPhoneFaulty({ id, value, phoneId, phoneUnreadable }: DesiredUser, log: LogState): boolean {
  if (phoneId === undefined || value.phone_number === null) return phoneUnreadable;
  return holderIn(log, 'phone', phoneId) !== id && normalisePhoneNumber(value.phone_number) === undefined;
}

function holderIn(log: LogState, kind: ReservationKind, reserved: string): string | undefined {
  const stored = log.reservations[kind].get(reserved);
  return stored === undefined ? undefined : holderOf(stored.state);
}

function checkWallet({ index, id, value, topUps }: DesiredPaymentMethod, log: LogState, faults: FaultCollector): void {
  if (value.kind === 'card') {
    if (value.prepaid) faults.add('payment_methods', index, '.prepaid', 'only a wallet can be prepaid');
    if (topUps.length > 0) faults.add('payment_methods', index, '.top_ups', 'only a wallet can be topped up');
  }
  const counted = log.wallets.get(id)?.state;
  const seen = new Set<string>();
  for (const [at, topUp] of topUps.entries()) {
    if (seen.has(topUp.id)) faults.add('payment_methods', index, `.top_ups[${at}].id`, 'stands in the list twice');
    seen.add(topUp.id);
    const amount = counted?.get(topUp.id);
    if (amount !== undefined && amount !== topUp.amount) {
      faults.add(
        'payment_methods',
        index,
        `.top_ups[${at}].amount`,
        `this top-up has been counted with ${amount} already, and counts once: give another one another id`,
      );
    }
  }
}

/** Usernames and phone numbers must be unique, in the file and among users who keep theirs in this import. */
function checkReservations(
  kind: ReservationKind,
  { desired, shaped, log, prune }: CheckInput,
  faults: FaultCollector,
): void {
  const field = kind === 'username' ? '.username' : '.phone_number';
  const byReserved = new Map<string, DesiredUser>();
  const byId = new Map((desired.users ?? []).map((user) => [user.id, user]));
  for (const user of desired.users ?? []) {
    const reserved = reservedId(kind, user);
    if (reserved === undefined) continue;
    const other = byReserved.get(reserved);
    if (other !== undefined) {
      if (other.id !== user.id) faults.add('users', user.index, field, `is the same as users[${other.index}]${field}`);
      continue;
    }
    byReserved.set(reserved, user);
    const holder = holderIn(log, kind, reserved);
    if (holder === undefined || holder === user.id) continue;
    const holderInFile = byId.get(holder);
    const keeps =
      holderInFile === undefined
        ? !prune && shaped.declared.get('users')?.has(holder) !== true
        : reservedId(kind, holderInFile) === reserved;
    if (keeps) faults.add('users', user.index, field, `is user ${JSON.stringify(holder)}'s already`);
  }
}

const NAMES: Readonly<Record<IdKind, string>> = {
  integration: 'integration',
  merchant: 'merchant',
  brand: 'brand',
  store: 'store',
  segment: 'segment',
  product: 'product',
  category: 'category',
  user: 'user',
  client: 'client',
  paymentMethod: 'payment method',
};

const ID = new RegExp(ID_PATTERN);

interface ReferenceInput {
  readonly shaped: Shaped;
  readonly log: LogState;
  /** True where entries that are missing from the file's arrays will be retired. */
  readonly prune: boolean;
}

/**
 * A referenced entry must be in the file, or live in the log and not be pruned. A list must name it once. References of
 * entries with other faults are checked, too.
 */
async function checkReferences(input: ReferenceInput, faults: FaultCollector): Promise<void> {
  for (const array of ARRAY_NAMES) {
    const references = Object.entries(REFERENCES[array]);
    if (references.length === 0) continue;
    await inSlices(input.shaped.objects.get(array) ?? [], ({ index, entry }) => {
      for (const [field, kind] of references) {
        const value = entry[field];
        if (Array.isArray(value))
          checkList(input, value, kind, (at, fault) => faults.add(array, index, `.${field}[${at}]`, fault));
        else checkOne(input, value, kind, (fault) => faults.add(array, index, `.${field}`, fault));
      }
    });
  }
}

function checkList(
  input: ReferenceInput,
  ids: readonly unknown[],
  kind: IdKind,
  add: (at: number, fault: string) => void,
): void {
  const seen = new Set<unknown>();
  for (const [at, id] of ids.entries()) {
    if (seen.has(id)) add(at, 'stands in the list twice');
    else checkOne(input, id, kind, (fault) => add(at, fault));
    seen.add(id);
  }
}

function checkOne(
  { shaped, log, prune }: ReferenceInput,
  id: unknown,
  kind: IdKind,
  add: (fault: string) => void,
): void {
  // The check of shapes reports malformed ids.
  if (typeof id !== 'string' || !ID.test(id)) return;
  const declared = shaped.declared.get(ARRAY_OF[kind]);
  if (declared?.has(id) === true) return;
  const status = log.entries[kind].get(id)?.state.status ?? 'none';
  const word = NAMES[kind];
  if (status === 'none') add(`no such ${word} "${id}"`);
  else if (status === 'retired') add(`${word} "${id}" is retired: bring it back in the same file`);
  else if (status === 'erased') add(`${word} "${id}" was erased`);
  else if (prune && declared !== undefined) add(`${word} "${id}" has gone from the file and would be pruned`);
}

const ARRAY_OF = Object.fromEntries(ARRAY_NAMES.map((array) => [KIND_OF_ARRAY[array], array])) as Record<
  IdKind,
  ArrayName
>;
