/** Joins gifts with their purchases and the owners of their phone numbers, in one read for each kind of document. */
import { ownerByPhone, phoneStream } from '../domain/account.js';
import { ownerOf } from '../domain/gift/decisions.js';
import { NO_TEXT } from '../lib/seal.js';
import { openText, type Subjects } from '../runtime/personal/index.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import { type AccountDocument, accountInLog } from '../projections/accounts.js';
import { giftIn } from '../projections/fromStreams.js';
import type { GiftDocument } from '../projections/gifts.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { TransactionDocument } from '../projections/transactions.js';
import { documentsListed } from './documentsListed.js';

export interface JoinedGift {
  readonly id: string;
  readonly gift: GiftDocument;
  readonly transaction: TransactionDocument;
  /** The purchase's message, where it was requested and exists. */
  readonly message?: string;
  /** Id of the gift's owner; `undefined` while the phone number has no owner (docs/api/gifts.md#gift-owner). */
  readonly owner: string | undefined;
}

export interface GiftModels {
  readonly gifts: ReadModel<GiftDocument>;
  readonly transactions: ReadModel<TransactionDocument>;
  readonly accounts: ReadModel<AccountDocument>;
}

/** `since`: see `ReadModel.get`. @throws UnavailableError */
export async function findGift(models: GiftModels, id: string, since?: Position): Promise<JoinedGift | undefined> {
  const gift = await models.gifts.get(id, since);
  if (gift === undefined) return undefined;
  const phoneId = gift.receiver.phone_id;
  const bought = models.transactions.get(gift.transaction_id, since);
  // Concurrent, so that both reads share a batch.
  const [transaction, phone] =
    phoneId === undefined ? [await bought] : await Promise.all([bought, models.accounts.get(`phone-${phoneId}`)]);
  return transaction === undefined ? undefined : joinedGift(id, gift, transaction, phone);
}

/**
 * Gifts of any purchases, in the order of `ids`, for a list; `undefined` for an id that the read models do not know, null
 * where a document is out of service.
 * @throws UnavailableError
 */
export async function findGifts(
  models: GiftModels,
  ids: readonly string[],
): Promise<(JoinedGift | null | undefined)[]> {
  const gifts = await documentsListed(models.gifts, ids);
  const [transactions, phones] = await Promise.all([
    byId(
      async (named) => documentsListed(models.transactions, named),
      '',
      (gift) => gift?.transaction_id,
      gifts,
    ),
    byId(
      async (named) => documentsListed(models.accounts, named),
      'phone-',
      (gift) => gift?.receiver.phone_id,
      gifts,
    ),
  ]);
  return ids.map((id, index) => {
    const gift = gifts[index];
    const transaction = transactions.get(gift?.transaction_id ?? '');
    const phone = phones.get(gift?.receiver.phone_id ?? '');
    if (gift === null || transaction === null || phone === null) return null;
    return gift === undefined || transaction === undefined ? undefined : joinedGift(id, gift, transaction, phone);
  });
}

/** Documents to which gifts refer, each read once, by the id in the gift. */
async function byId<D>(
  read: (ids: readonly string[]) => Promise<readonly D[]>,
  prefix: string,
  named: (gift: GiftDocument | null | undefined) => string | undefined,
  gifts: readonly (GiftDocument | null | undefined)[],
): Promise<ReadonlyMap<string, D>> {
  const ids = [...new Set(gifts.flatMap((gift) => named(gift) ?? []))];
  const documents = await read(ids.map((id) => prefix + id));
  return new Map(ids.map((id, index) => [id, documents[index] as D]));
}

/** `phone`: the account document of the receiver's phone number. */
export function joinedGift(
  id: string,
  gift: GiftDocument,
  transaction: TransactionDocument,
  phone: AccountDocument | undefined,
): JoinedGift {
  return { id, gift, transaction, owner: ownerIn(gift, transaction, phone) };
}

/** The gifts of one purchase with its message, where `relations` embed the message. @throws UnavailableError */
export async function withMessage(
  { subjects }: { readonly subjects: Pick<Subjects, 'secrets'> },
  joined: readonly JoinedGift[],
  relations: readonly string[],
): Promise<readonly JoinedGift[]> {
  const sealed = joined[0]?.transaction.message ?? NO_TEXT;
  if (sealed === NO_TEXT || !relations.includes('message')) return joined;
  const message = await openText(subjects, sealed);
  return joined.map((gift) => ({ ...gift, message }));
}

/** The gift's last valid day (UTC). */
export function expiryOf({ gift, transaction }: Pick<JoinedGift, 'gift' | 'transaction'>): string {
  return gift.expires_on ?? transaction.expires_on;
}

/**
 * Joins gifts of one purchase, in the order of `gifts`. A gift whose phone number is out of service is left out.
 * @throws UnavailableError
 */
export async function joinGifts(
  models: Pick<GiftModels, 'accounts'>,
  transaction: TransactionDocument,
  gifts: readonly { readonly id: string; readonly gift: GiftDocument }[],
): Promise<JoinedGift[]> {
  const phones = await byId(
    async (ids) => documentsListed(models.accounts, ids),
    'phone-',
    (gift) => gift?.receiver.phone_id,
    gifts.map(({ gift }) => gift),
  );
  return gifts.flatMap(({ id, gift }) => {
    const phone = phones.get(gift.receiver.phone_id ?? '');
    return phone === null ? [] : [joinedGift(id, gift, transaction, phone)];
  });
}

/**
 * A gift as it was right after one of its events. Its own document and its owner are folded from the streams, whatever
 * the read models hold now; its purchase is at least as of that event. `history` ends with it.
 * @throws UnavailableError
 */
export async function giftAfter(
  deps: Pick<GiftModels, 'transactions'> & { readonly events: EventStore },
  id: string,
  history: readonly RecordedEvent[],
): Promise<JoinedGift> {
  const until = history.at(-1)?.position;
  const gift = await giftIn(deps.events, id, history, until);
  const transaction = await deps.transactions.get(gift.transaction_id, until);
  if (transaction === undefined) throw new Error(`a gift names purchase ${gift.transaction_id}, which was never made`);
  const phoneId = gift.receiver.phone_id;
  const phone = phoneId === undefined ? undefined : await accountInLog(deps.events, phoneStream(phoneId));
  return joinedGift(id, gift, transaction, phone);
}

function ownerIn(
  gift: GiftDocument,
  transaction: TransactionDocument,
  phone: AccountDocument | undefined,
): string | undefined {
  const phoneOwner =
    phone?.entry === 'phone' ? ownerByPhone(phone.holders, gift.reassigned_at ?? transaction.created_at) : undefined;
  return ownerOf(
    { issued: { receiver: gift.receiver, sender_id: transaction.buyer_id }, claimedBy: gift.claimed_by },
    phoneOwner,
  );
}
