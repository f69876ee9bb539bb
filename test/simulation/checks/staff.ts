/**
 * What staff are shown at the end of a run is what the log holds (docs/support.md): purchases and what became of their
 * money, totals, parked work, and who saw what.
 */
import { type ParkedEvent, parkedId, type ParkedName, parkedNameOf } from '../../../src/domain/parked.js';
import { idOf } from '../../../src/domain/streamName.js';
import { sleep } from '../../../src/lib/world.js';
import type { FindingCode } from '../../../src/ops/diagnosis/findings.js';
import { type StaffCall, staffCallsOf } from '../clients/staffCalls.js';
import type { StoredEvent } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { field, listField, textField } from '../model/history.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { perform } from '../world/simulatedWorld.js';
import { AUDITOR, openStaffReader, type StaffReader } from './staffReader.js';

type Data = Readonly<Record<string, unknown>>;

/** Gifts of a run whose access records are read. */
const GIFTS = 3;
/** Records of a page: an operation may begin on one page and end on another. */
const SMALL_PAGE = 4;
/** A finding that is gone in the next diagnoses was none. */
const DIAGNOSES = 3;
const AGAIN_MS = 10_000;
const DAY_MS = 24 * 3_600_000;

/** To be called once nothing fails any more. @param members those that serve the API */
export async function checkStaff(cluster: Cluster, members: readonly Member[]): Promise<Finding[]> {
  const { simulation } = cluster;
  const reader = openStaffReader(cluster, members, 'auditor of staff');
  return perform(simulation, reader.client.process, 'read what staff are shown', async () => {
    // Reading appends to the log.
    const stored = [...cluster.log.stored];
    const span = spanOf(simulation.now() - simulation.ms(), simulation.now());
    const diagnosis = async (): Promise<Finding[]> =>
      wrongDiagnosis(
        listField((await reader.read(AUDITOR, '/ops/diagnosis')).body, 'data'),
        stored,
        cluster.headBeyond !== undefined,
      );
    let diagnosed = await diagnosis();
    // A rebuild may end between the looks at it.
    for (let again = 0; diagnosed.length > 0 && again < DIAGNOSES; again++) {
      await sleep(AGAIN_MS);
      diagnosed = await diagnosis();
    }
    return [
      ...wrongPurchases(await reader.readPages(AUDITOR, '/ops/transactions?limit=100'), stored),
      ...wrongTotals((await reader.read(AUDITOR, `/ops/totals?check=true&${span}`)).body, stored),
      ...wrongParked(
        await reader.readPages(AUDITOR, '/ops/parked?state=all&limit=100'),
        listField((await reader.read(AUDITOR, '/ops/parked/groups')).body, 'data'),
        stored,
      ),
      ...diagnosed,
      ...(await checkAccess(reader, { stored, span, calls: staffCallsOf(simulation).answered })),
    ];
  });
}

const spanOf = (from: number, to: number): string =>
  `from=${new Date(from - DAY_MS).toISOString()}&to=${new Date(to + DAY_MS).toISOString()}`;

const dataOf = ({ data }: StoredEvent): Data => JSON.parse(data) as Data;

/** What the log says of a purchase. */
interface Purchase {
  total: number;
  payment: 'pending' | 'charged' | 'declined';
  paid: number;
  refunded: number;
  readonly disputes: Map<unknown, unknown>;
}

function purchasesIn(stored: readonly StoredEvent[]): Map<string, Purchase> {
  const purchases = new Map<string, Purchase>();
  for (const event of stored) {
    const id = idOf(event.stream);
    const data = dataOf(event);
    if (event.type === 'GiftsPurchased') {
      const total = Number(data['total']);
      purchases.set(id, { total, payment: 'pending', paid: 0, refunded: 0, disputes: new Map() });
    }
    const purchase = purchases.get(id);
    if (purchase === undefined) continue;
    const amount = Number(data['amount']);
    if (event.type === 'PaymentDeclined') purchase.payment = 'declined';
    if (event.type === 'PaymentCharged') Object.assign(purchase, { payment: 'charged', paid: amount });
    // The refund of a charge that bought nothing has no gifts.
    if (event.type === 'GiftsRefunded' && (data['gift_ids'] as unknown[]).length > 0) purchase.refunded += amount;
    if (event.type === 'RefundedAtProvider') purchase.refunded += amount;
    if (event.type === 'DisputeOpened') purchase.disputes.set(data['dispute_id'], 'open');
    if (event.type === 'DisputeClosed') purchase.disputes.set(data['dispute_id'], data['outcome']);
  }
  return purchases;
}

/** docs/api/purchases.md#transaction-status */
function statusOf({ payment, total, refunded, disputes }: Purchase): string {
  if (payment !== 'charged') return payment;
  if (refunded >= total) return 'refunded';
  if ([...disputes.values()].some((status) => status !== 'won')) return 'disputed';
  return refunded > 0 ? 'partially_refunded' : 'charged';
}

/** @param rows the list of purchases */
export function wrongPurchases(rows: readonly unknown[], stored: readonly StoredEvent[]): Finding[] {
  const lines = rows.map((row) =>
    ['transaction_id', 'paid', 'refunded', field(row, 'total') === 0 ? 'total' : 'status']
      .map((name) => String(field(row, name)))
      .join(' '),
  );
  const expected = [...purchasesIn(stored)].map(([id, one]) =>
    // Whether what cost nothing is refunded depends on its gifts.
    [id, one.paid, one.refunded, one.total === 0 ? 0 : statusOf(one)].join(' '),
  );
  return differences('purchases', lines, expected);
}

/** Lines that only one of the two has, or that one has more often. */
function differences(rule: string, shown: readonly string[], expected: readonly string[]): Finding[] {
  const [left, right] = [shown.toSorted(), expected.toSorted()];
  if (left.join('\n') === right.join('\n')) return [];
  const more = left.find((line, index) => line !== right[index]);
  const less = right.find((line, index) => line !== left[index]);
  return [{ rule, text: `of ${shown.length} lines one is ${more}, of ${expected.length} in the log ${less}` }];
}

/** @param body totals of all time, with their check */
export function wrongTotals(body: unknown, stored: readonly StoredEvent[]): Finding[] {
  const findings: Finding[] = [];
  if (field(body, 'check', 'agree') !== true)
    findings.push({ rule: 'totals', text: `their check fails: ${JSON.stringify(field(body, 'check'))}` });
  const sum = (amounts: readonly number[]): number => amounts.reduce((all, one) => all + one, 0);
  const count = (type: string, replacement: boolean): number =>
    stored.filter((event) => event.type === type && (dataOf(event)['replacement'] === true) === replacement).length;
  const purchases = [...purchasesIn(stored).values()];
  const expected = {
    issued: count('GiftIssued', false),
    replaced: count('GiftIssued', true),
    redeemed: count('GiftRedeemed', false),
    unredeemed: count('GiftUnredeemed', false),
    refunded_value: sum(purchases.map(({ payment, refunded }) => (payment === 'declined' ? 0 : refunded))),
    charged_back: sum(purchases.map(({ disputes }) => [...disputes.values()].filter((one) => one === 'lost').length)),
  };
  for (const [name, value] of Object.entries(expected))
    if (field(body, 'sums', name) !== value)
      findings.push({ rule: 'totals', text: `${name} is ${String(field(body, 'sums', name))}, by the log ${value}` });
  return findings;
}

/** A piece of parked work as the log has it. */
interface Piece {
  readonly name: ParkedName;
  readonly state: string;
  readonly times: unknown;
  /** User who decided on it last. */
  readonly by: string;
}

/** By the pieces' ids. */
function piecesIn(stored: readonly StoredEvent[]): Map<string, Piece> {
  const pieces = new Map<string, Piece>();
  for (const event of stored) {
    const name = parkedNameOf(event.stream);
    if (name === undefined) continue;
    const { entity, times } = dataOf(event) as unknown as ParkedEvent['data'];
    const id = parkedId(name, entity);
    const { by } = JSON.parse(event.metadata) as { readonly by: { readonly user?: string } };
    const decided = event.type === 'WorkParked' ? pieces.get(id)?.by : by.user;
    const state = event.type.slice('Work'.length).toLowerCase();
    pieces.set(id, { name, state, times, by: String(decided ?? null) });
  }
  return pieces;
}

/** @param rows all parked work @param groups what waits of it, in groups */
export function wrongParked(
  rows: readonly unknown[],
  groups: readonly unknown[],
  stored: readonly StoredEvent[],
): Finding[] {
  const pieces = piecesIn(stored);
  const lines = rows.map((row) =>
    [field(row, 'id'), field(row, 'state'), field(row, 'times'), field(row, 'by', 'user') ?? null]
      .map(String)
      .join(' '),
  );
  const expected = [...pieces].map(([id, { state, times, by }]) => [id, state, times, by].map(String).join(' '));
  const waiting = [...pieces.values()].filter(({ state }) => state === 'parked').length;
  const grouped = groups.reduce<number>((sum, group) => sum + Number(field(group, 'count')), 0);
  return [
    ...differences('parked list', lines, expected),
    ...(grouped === waiting ? [] : [{ rule: 'parked list', text: `${grouped} pieces in groups, ${waiting} wait` }]),
  ];
}

const PARKED: Readonly<Record<ParkedName, FindingCode>> = {
  purchase: 'parked_purchases',
  refund: 'parked_refunds',
  dispute: 'parked_disputes',
  notification: 'parked_notifications',
};

/**
 * A diagnosis finds the parked work, and nothing else, once all has recovered.
 * @param found what it found
 * @param isAltered whether the log was put back to before a published head: it finds that, too
 */
export function wrongDiagnosis(
  found: readonly unknown[],
  stored: readonly StoredEvent[],
  isAltered = false,
): Finding[] {
  const waiting = new Set<FindingCode>([
    ...[...piecesIn(stored).values()].flatMap(({ state, name }) => (state === 'parked' ? [PARKED[name]] : [])),
    ...(isAltered ? ['tree_failing' as const] : []),
  ]);
  // Only the process that signs heads knows that the log is another one.
  const expected = new Set<FindingCode>([...waiting, ...(isAltered ? ['log_altered' as const] : [])]);
  const codes = new Set(found.map((one) => textField(one, 'code') ?? ''));
  return [
    ...found.filter((one) => !expected.has(textField(one, 'code') as FindingCode)),
    ...[...waiting].filter((code) => !codes.has(code)).map((code) => `no finding ${code}`),
  ].map((one) => ({ rule: 'diagnosis', text: JSON.stringify(one) }));
}

interface AccessOptions {
  readonly stored: readonly StoredEvent[];
  readonly span: string;
  readonly calls: readonly StaffCall[];
}

/** Each answered call of staff is in the access records, also in those of a gift that it named. */
async function checkAccess(reader: StaffReader, { stored, span, calls }: AccessOptions): Promise<Finding[]> {
  const requests = async (query: string): Promise<Map<string, number>> => {
    const counts = new Map<string, number>();
    for (const record of await reader.readPages(AUDITOR, `/ops/access?${span}&${query}`)) {
      const id = textField(record, 'request_id') ?? '';
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  };
  const findings: Finding[] = [];
  const missing = (some: readonly StaffCall[], shown: ReadonlyMap<string, number>, of: string): void => {
    const lost = some.find(({ requestId }) => !shown.has(requestId));
    if (lost !== undefined)
      findings.push({ rule: 'access', text: `${of}: no record of ${lost.user}'s ${lost.method} ${lost.path}` });
  };
  missing(calls, await requests('limit=1000'), 'all records');
  const purchaseOf = new Map(
    stored.flatMap((event) =>
      event.type === 'GiftIssued' ? [[idOf(event.stream), String(dataOf(event)['transaction_id'])] as const] : [],
    ),
  );
  const redemptionOf = new Map(
    stored.flatMap((event) =>
      event.type === 'GiftRedeemed' ? [[idOf(event.stream), String(dataOf(event)['redemption_id'])] as const] : [],
    ),
  );
  const naming = (gift: string): StaffCall[] => {
    const purchase = `transactions/${purchaseOf.get(gift)}`;
    return calls.filter(({ path, gifts }) =>
      gifts.length === 0 ? path.includes(gift) || path.includes(purchase) : gifts.includes(gift),
    );
  };
  const named = [...purchaseOf.keys()].filter((gift) => naming(gift).length > 0);
  for (let count = 0; count < Math.min(GIFTS, named.length); count++) {
    const gift = reader.client.chance.pick(named);
    await reader.read(AUDITOR, `/ops/redemptions?gift=${gift}&format=csv`);
    const redemption = redemptionOf.get(gift);
    const found =
      redemption === undefined
        ? undefined
        : await reader.read(AUDITOR, `/ops/gifts?redemption=${redemption}&reason=who+used+it`);
    const whole = await requests(`gift=${gift}&limit=1000`);
    missing(naming(gift), whole, `gift ${gift}`);
    if (found !== undefined && !whole.has(found.headers['x-request-id'] ?? ''))
      findings.push({ rule: 'access', text: `gift ${gift}: no record of a search by its redemption ${redemption}` });
    const paged = await requests(`gift=${gift}&limit=${SMALL_PAGE}`);
    // The calls that read the pages name the gift, too.
    const less = [...whole].find(([id, times]) => (paged.get(id) ?? 0) < times);
    if (less !== undefined)
      findings.push({ rule: 'access', text: `gift ${gift}: pages lack a record of the request ${less[0]}` });
  }
  return findings;
}
