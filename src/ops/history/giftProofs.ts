/**
 * Which events of a gift are proven to auditors and to merchants, and what of them is shown (docs/evidence.md#bundles).
 */
import { FIELD_CLASSES, type FieldClasses } from '../../domain/fieldClasses.js';
import { type GiftRedeemed, type GiftReplaced, giftStream } from '../../domain/gift/events.js';
import { notificationStream } from '../../domain/notification.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { isOfLaterVersion } from '../../domain/upcasters.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { proveEvents, type TileFolder } from '../evidence/index.js';
import type { NamedGifts } from './giftHistory.js';
import { giftsIn, type NamesGifts } from './redactOtherGifts.js';

const READS_AT_ONCE = 16;

export interface ProofDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: TileFolder;
}

/** What of an event is shown: fields of its data by name, and whether its metadata is. */
interface IsShown {
  readonly field: (name: string) => boolean;
  readonly metadata: boolean;
}

/** Proves the events of the gifts, their purchase and their notifications, for auditors. @throws as `proveEvents` */
export async function proveGifts(
  deps: ProofDeps,
  { transactionId, giftIds }: Pick<NamedGifts, 'transactionId' | 'giftIds'>,
): ReturnType<typeof proveEvents> {
  const ofGifts = giftIds.flatMap((id) => [giftStream(id), notificationStream(id)]);
  const all: RecordedEvent[] = [];
  await inParallel([transactionStream(transactionId), ...ofGifts], READS_AT_ONCE, async (stream) => {
    all.push(...(await deps.stored.read(stream)));
  });
  const named = new Set(giftIds);
  return proveEvents(deps, all, (event) => shownToAuditors(event, named));
}

/** Proves the issue of the gift, the redemption and its reversal, for the merchant. @throws as `proveEvents` */
export async function proveRedemption(
  deps: ProofDeps,
  giftId: string,
  redemptionId: string,
): ReturnType<typeof proveEvents> {
  const life = await deps.stored.read(giftStream(giftId));
  const concerns = ({ type, data }: RecordedEvent): boolean =>
    type === 'GiftIssued' || (data as { readonly redemption_id?: string }).redemption_id === redemptionId;
  return proveEvents(deps, life.filter(concerns), shownToMerchants);
}

interface NamedRedemption {
  readonly id: string;
  /** Merchant at whose location the gift was redeemed. */
  readonly merchantId: string;
}

/**
 * Finds a redemption of a gift.
 * @param redemptionId may be `latest`
 * @returns `undefined` where the gift has no such redemption
 */
export async function redemptionNamed(
  stored: Pick<EventStore, 'read'>,
  giftId: string,
  redemptionId: string,
): Promise<NamedRedemption | undefined> {
  const redeemed = (await stored.read(giftStream(giftId))).flatMap(({ type, data }) =>
    type === 'GiftRedeemed' ? [data as GiftRedeemed['data']] : [],
  );
  const found =
    redemptionId === 'latest' ? redeemed.at(-1) : redeemed.find((one) => one.redemption_id === redemptionId);
  return found === undefined ? undefined : { id: found.redemption_id, merchantId: found.location_merchant_id };
}

/**
 * Parts of an event for auditors: neither secret nor personal fields, nor metadata with encrypted fields. Events of an
 * unknown type, or of a later release's version, have no data. A refund of these and other gifts does not tell which
 * gifts, nor a replaced gift the one in its place: a gift's id is enough to use it.
 */
function shownToAuditors(event: RecordedEvent, giftIds: ReadonlySet<string>): IsShown {
  const open = openFields(event);
  const { replaced_by } = event.data as Partial<GiftReplaced['data']>;
  const named = [...giftsIn(event.data), ...(replaced_by === undefined ? [] : [replaced_by.gift_id])];
  const namesOthers = named.some((id) => !giftIds.has(id));
  return {
    field: (name) => open?.has(name) === false && !(namesOthers && OF_GIFTS.has(name)),
    metadata: event.metadata.personal === undefined,
  };
}

const OF_GIFTS: ReadonlySet<string> = new Set(['gift_ids', 'kept', 'replaced_by'] satisfies (
  keyof NamesGifts | keyof GiftReplaced['data']
)[]);

/** Fields that tell who gave and got a gift, which no merchant needs. */
const FOREIGN: ReadonlySet<string> = new Set(['sender_id', 'receiver']);

/** Parts of an event for merchants: those for auditors, without metadata, and without who gave and got the gift. */
function shownToMerchants(event: RecordedEvent): IsShown {
  const open = openFields(event);
  return {
    field: (name) => open?.has(name) === false && !FOREIGN.has(name),
    metadata: false,
  };
}

/** Names of the fields that a proof hides; `undefined` where it hides all. */
function openFields({ type, data, metadata }: RecordedEvent): ReadonlySet<string> | undefined {
  const classes = Object.hasOwn(FIELD_CLASSES, type)
    ? (FIELD_CLASSES as Readonly<Record<string, FieldClasses>>)[type]
    : undefined;
  if (classes === undefined || isOfLaterVersion(type, metadata.schema)) return undefined;
  return new Set([...classes.secret, ...classes.personal].flatMap((path) => fieldWith(data, path)));
}

/**
 * The top-level field in which the path leads to a value; empty where it leads to none. A field is shown whole or not
 * at all.
 */
function fieldWith(data: object, path: string): string[] {
  const [field = '', ...steps] = path.replaceAll('[]', '.[]').split('.');
  return leadsSomewhere((data as Readonly<Record<string, unknown>>)[field], steps) ? [field] : [];
}

function leadsSomewhere(value: unknown, [step, ...steps]: readonly string[]): boolean {
  if (value === undefined) return false;
  if (step === undefined) return true;
  if (step === '[]') return Array.isArray(value) && value.some((one) => leadsSomewhere(one, steps));
  return typeof value === 'object' && value !== null && leadsSomewhere((value as Record<string, unknown>)[step], steps);
}
