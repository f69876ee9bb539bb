/**
 * Purchases (docs/api/purchases.md#buy-gifts, docs/api/purchases.md#purchase-outcome, docs/api/conventions.md#pages).
 */
import { type Purchased, findPurchase, purchaseGifts } from '../../commands/purchaseGifts.js';
import { rescheduleSend } from '../../commands/rescheduleSend.js';
import { copyWith } from '../../lib/copyWith.js';
import { DECLINE_CODES, declineCodeOf } from '../../domain/purchase/declineCodes.js';
import type { RefundedMoney } from '../../domain/purchase/status.js';
import { Refusal } from '../../domain/refusal.js';
import { type GiftDocument, giftsProjection } from '../../projections/gifts.js';
import { type TransactionDocument, transactionIn } from '../../projections/transactions.js';
import { transactionStream } from '../../domain/purchase/events.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { BEHIND_WAIT_MS } from '../../runtime/readmodels/index.js';
import { basePathOf } from '../../lib/urls.js';
import { inSlices } from '../../lib/async/slices.js';
import { LISTED_GIFT_RELATIONS, TRANSACTION_RELATIONS, embedGift, requestKinds } from '../../entities/embed.js';
import { type Embedded, embeddedCollector } from '../../entities/embedded.js';
import { FIELD_HEADER, HttpError } from '../pipeline/errors.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps, viewing } from './deps.js';
import { giftIdsOf, type Viewer, giftEntity, transactionEntity } from '../../entities/gifts.js';
import { upToOwn } from '../../commands/transact.js';
import { refundedMoneyOf } from './refundedMoney.js';
import { documentsListed } from '../../entities/documentsListed.js';
import { joinGifts, withMessage } from '../../entities/joinedGift.js';
import { NEXT_ACTION_FIELDS, needsAuthentication } from './nextAction.js';
import { pageOf, pageParameters, pageRequest, pageSchema, paginate } from '../representation/pages.js';
import { positionText } from '../../ports/positionText.js';
import { PURCHASE_BODY, type PurchaseBody, RESCHEDULE_BODY } from './purchaseBody.js';
import { POSITION_HEADER, waitUntilProjected } from '../pipeline/positions.js';
import type { Answer, EarlyCall, Route } from '../pipeline/route.js';
import { dataAnswer, dataSchema, jsonAnswer, querySchema } from '../pipeline/schemas.js';
import {
  boughtGiftExample,
  giftEmbeddedExample,
  giftExample,
  giftSchema,
  listedGiftsEmbeddedSchema,
  messageExample,
  transactionEmbeddedSchema,
  transactionExample,
  transactionSchema,
} from './schemas.js';

/** Headers of a purchase that is not paid (docs/api/purchases.md#purchase-outcome). */
const DECLINE_HEADER = 'Decline-Code';
const TRANSACTION_HEADER = 'Transaction-Id';
const TRANSACTION_ID = /^[0-9a-zA-Z-]{1,64}$/;

export const PURCHASE_ROUTE = { method: 'POST', path: '/api/v2/transactions' } as const;

const TRANSACTION_ANSWER = {
  schema: {
    ...dataSchema(transactionSchema, {
      anyOf: [transactionEmbeddedSchema, { type: 'array', items: {}, maxItems: 0 }],
      description: 'The embedded entities; `[]` when none were requested.',
    }),
    required: ['data', 'embedded'],
  },
  example: { data: transactionExample, embedded: { ...giftEmbeddedExample, gifts: [boughtGiftExample] } },
};

const LOCATION = { Location: 'Address of the gifts of this transaction: a path, with that of `PUBLIC_URL` in front.' };
const UNPAID = { ...LOCATION, [TRANSACTION_HEADER]: 'The id of this transaction.' };
const DECLINED = {
  ...UNPAID,
  [DECLINE_HEADER]: `Why, and what the buyer can do: ${Object.entries(DECLINE_CODES)
    .map(([code, advice]) => `\`${code}\` (${advice})`)
    .join(', ')}. More may come.`,
};
const WRITTEN = { [POSITION_HEADER]: 'The log position of this purchase.' };
const REFUSED_RECEIVER = {
  [FIELD_HEADER]: 'The first receiver that is refused, as `purchase.receivers[1].phone_number`; counted from 0.',
};
const REFUSED_TIME = { [FIELD_HEADER]: 'The field of the time.' };
const NOT_DECIDED_YET =
  'A gift whose charge is still under way is `pending`. Where the buyer’s bank demands authentication, the answer is 402 with `next_action`: the buyer has 15 minutes for it in ' +
  'the card processor’s library, then payment and gifts are cancelled. `GET /api/v2/transactions/{id}` shows the outcome.';

const giftRelations = (embeds: readonly string[]): string[] =>
  embeds.filter((relation) => relation !== 'gifts').map((relation) => relation.slice('gifts.'.length));

const PLACES: Readonly<Record<string, string>> = {
  payment_reference: 'payment.reference',
  product_id: 'purchase.reference',
};

/** Gives the field of a purchase's refusal as it is called in the body. */
function namedInBody(error: unknown): never {
  if (!(error instanceof Refusal) || error.field === '') throw error;
  throw new Refusal(error.code, PLACES[error.field] ?? `purchase.${error.field}`);
}

interface Shown {
  readonly id: string;
  readonly gift: GiftDocument;
}

/** The gifts of a purchase before any of their own events. `purchase`: its first event. */
async function asBought(purchase: RecordedEvent): Promise<Shown[]> {
  const shown: Shown[] = [];
  await inSlices<string>(
    giftsProjection.documentIds(purchase),
    (id, index) => void shown.push({ id, gift: giftsProjection.evolve(undefined, purchase, id, index) }),
  );
  return shown;
}

export function transactionRoutes(deps: GiftRouteDeps): Route[] {
  const basePath = basePathOf(deps.publicUrl);
  const locationOf = (id: string): Record<string, string> => ({
    Location: `${basePath}/api/v2/transactions/${id}/gifts`,
  });
  const viewerOf = (early: EarlyCall): Viewer => viewing(deps, userOf(early));

  const embed = async (
    transaction: TransactionDocument,
    gifts: readonly Shown[],
    embeds: readonly string[],
    viewer: Viewer,
  ): Promise<Embedded | readonly never[]> => {
    if (embeds.length === 0) return [];
    const relations = giftRelations(embeds);
    const catalogue = deps.catalogue.current();
    const embedded = embeddedCollector();
    embedded.request('gifts');
    requestKinds(embedded, relations);
    const all = await withMessage(deps, await joinGifts(deps, transaction, gifts), relations);
    await inSlices(all, (joined) => {
      embedded.add('gifts', joined.id, () => giftEntity(joined, viewer));
      embedGift(embedded, joined, relations, viewer, catalogue);
    });
    return embedded.result();
  };

  const answer = async (
    id: string,
    transaction: TransactionDocument,
    gifts: () => Promise<readonly Shown[]>,
    embeds: readonly string[],
    viewer: Viewer,
    {
      ofRefusal = {},
      refundedMoney,
    }: { ofRefusal?: Record<string, string>; refundedMoney?: RefundedMoney | undefined } = {},
  ): Promise<Answer> => {
    const headers = locationOf(id);
    const { payment, authentication } = transaction;
    const unpaid = { ...headers, [TRANSACTION_HEADER]: id, ...ofRefusal };
    if (payment === 'pending' && authentication !== undefined) {
      const needed = await needsAuthentication({
        questions: deps.questions,
        transactionId: id,
        authentication,
        headers: unpaid,
        onlyWhileWaiting: true,
      });
      if (needed !== undefined) throw needed;
    }
    if (payment === 'declined') {
      const code = declineCodeOf(transaction.decline_code);
      throw new HttpError('payment_declined', { headers: { ...unpaid, [DECLINE_HEADER]: code } });
    }
    const embedded = await embed(transaction, embeds.length === 0 ? [] : await gifts(), embeds, viewer);
    return {
      headers,
      body: { data: transactionEntity(id, transaction, refundedMoney), embedded },
      // Messages may be stored only sealed, so an answer that shows one is not stored.
      unstored: embeds.includes('gifts.message'),
    };
  };

  const purchased = async (
    { transactionId, history, position, replayed }: Purchased,
    embeds: readonly string[],
    viewer: Viewer,
  ): Promise<Answer> => {
    const transaction = transactionIn(history);
    const [first] = history;
    if (transaction === undefined || first === undefined) throw new Error('a purchase was appended and is not there');
    if (position !== undefined) await waitUntilProjected(position, [deps.transactions, deps.gifts], BEHIND_WAIT_MS);
    // A refused purchase is in the log, too: its answer has a successful answer's headers.
    const ofRefusal = {
      ...(position === undefined ? {} : { [POSITION_HEADER]: positionText(deps.events.logId, position) }),
      ...(replayed ? { 'Idempotent-Replayed': 'true' } : {}),
    };
    const { authentication, payment } = transaction;
    if (authentication !== undefined && (replayed || payment === 'pending')) {
      // A repeated purchase gets the first answer, whatever happened since.
      const headers = { ...locationOf(transactionId), [TRANSACTION_HEADER]: transactionId, ...ofRefusal };
      const needed = await needsAuthentication({
        questions: deps.questions,
        transactionId,
        authentication,
        headers,
        onlyWhileWaiting: false,
      });
      if (needed !== undefined) throw needed;
    }
    // The gifts are read from the log, so that a repeated purchase gets the same gifts.
    const gifts = async (): Promise<Shown[]> => asBought(first);
    const made = await answer(transactionId, transaction, gifts, embeds, viewer, { ofRefusal });
    return copyWith(made, { status: 201, replayed, position });
  };

  /** Other users' transactions do not exist for a caller (docs/api/purchases.md#show-a-transaction). */
  const find = async (
    early: EarlyCall,
  ): Promise<{ readonly id: string; readonly transaction: TransactionDocument }> => {
    const id = early.params['transactionId'] ?? '';
    const user = userOf(early);
    const transaction = TRANSACTION_ID.test(id) ? await deps.transactions.get(id, early.position) : undefined;
    if (transaction?.buyer_id !== user.id) throw new HttpError('transaction_not_found');
    return { id, transaction };
  };

  const giftsBought = async (transactionId: string): Promise<ReadonlyMap<string, GiftDocument>> => {
    const [purchase] = await deps.events.read(transactionStream(transactionId), { limit: 1 });
    return new Map((purchase === undefined ? [] : await asBought(purchase)).map(({ id, gift }) => [id, gift]));
  };

  /** Gifts of a purchase, without those that are out of service. */
  const documentsOf = async (
    transactionId: string,
    ids: readonly string[],
    since: Position | undefined,
  ): Promise<Shown[]> => {
    const gifts = await documentsListed(deps.gifts, ids, since);
    const bought = gifts.includes(undefined) ? await giftsBought(transactionId) : undefined;
    return ids.flatMap((id, index) => {
      if (gifts[index] === null) return [];
      // A gift that is not issued yet is shown as it was bought.
      const gift = gifts[index] ?? bought?.get(id);
      if (gift === undefined) throw new Error(`purchase ${transactionId} has no gift ${id}`);
      return [{ id, gift }];
    });
  };

  return [
    {
      ...PURCHASE_ROUTE,
      outward: true,
      operation: 'purchaseGifts',
      summary: 'Buy gifts',
      description: `Waits a moment for the charge. ${NOT_DECIDED_YET} Declined: the gifts are cancelled. Send an Idempotency-Key: a repeated purchase then never buys twice.`,
      tag: 'Transactions',
      caller: 'user',
      readsSingly: true,
      embeds: TRANSACTION_RELATIONS,
      body: PURCHASE_BODY,
      bodyExample: {
        payment: { method: 'card', reference: 'pm_card_visa' },
        purchase: {
          type: 'gift',
          reference: giftExample.purchase_id,
          receivers: [{ user_id: giftExample.receiver_id }],
          message: messageExample.message,
        },
      },
      answers: [
        {
          status: 201,
          description: 'Bought; the charge has settled or is still under way.',
          headers: LOCATION,
          ...TRANSACTION_ANSWER,
        },
      ],
      errorFields: NEXT_ACTION_FIELDS,
      errorHeaders: {
        payment_declined: { ...DECLINED, ...WRITTEN },
        payment_needs_authentication: { ...UNPAID, ...WRITTEN },
        receiver_not_found: REFUSED_RECEIVER,
        invalid_phone_number: REFUSED_RECEIVER,
        invalid_send_at: REFUSED_TIME,
        nobody_to_send_to: REFUSED_TIME,
      },
      errors: [
        'payment_declined',
        'payment_needs_authentication',
        'invalid_payment_reference',
        'cannot_use_payment_method',
        'invalid_product',
        'amount_too_small',
        'amount_too_large',
        'receiver_not_found',
        'invalid_phone_number',
        'nobody_to_send_to',
        'invalid_send_at',
      ],
      async open(early) {
        const context = contextOf(early, deps.now());
        const earlier =
          early.bodyHash === undefined ? undefined : await findPurchase(deps, context, early.firstPosition);
        return async ({ body, embeds }) => {
          const { payment, purchase } = body as PurchaseBody;
          const request = {
            product_id: purchase.reference,
            payment_reference: payment.reference,
            message: purchase.message ?? '',
            ...(purchase.receivers === undefined ? {} : { receivers: purchase.receivers }),
            ...(purchase.send_at === undefined ? {} : { send_at: purchase.send_at }),
            ...(purchase.reference_id === undefined ? {} : { reference_id: purchase.reference_id }),
          };
          return purchased(
            earlier ?? (await purchaseGifts(deps, userOf(early).id, context, request).catch(namedInBody)),
            embeds,
            viewerOf(early),
          );
        };
      },
    },
    {
      method: 'GET',
      path: '/api/v2/transactions/:transactionId',
      operation: 'getTransaction',
      summary: 'One transaction',
      description: `For its buyer: the answer of the purchase, by the present state. ${NOT_DECIDED_YET}`,
      tag: 'Transactions',
      caller: 'user',
      readsSingly: true,
      embeds: TRANSACTION_RELATIONS,
      params: { transactionId: 'The transaction’s id.' },
      answers: [{ status: 200, description: 'The transaction.', headers: LOCATION, ...TRANSACTION_ANSWER }],
      errorFields: NEXT_ACTION_FIELDS,
      errorHeaders: { payment_declined: DECLINED, payment_needs_authentication: UNPAID },
      errors: ['transaction_not_found', 'payment_declined', 'payment_needs_authentication'],
      async open(early) {
        const { id, transaction } = await find(early);
        const refundedMoney = transaction.payment === 'charged' ? await refundedMoneyOf(deps, id) : undefined;
        return async ({ embeds }) =>
          answer(
            id,
            transaction,
            () => documentsOf(id, giftIdsOf(transaction), early.position),
            embeds,
            viewerOf(early),
            {
              refundedMoney,
            },
          );
      },
    },
    {
      method: 'PATCH',
      path: '/api/v2/transactions/:transactionId',
      operation: 'rescheduleTransaction',
      outward: true,
      summary: 'Change when gifts are sent',
      description:
        'For the buyer of a purchase with `send_at`, until it is sent: another time, `now`, or null, which sends nothing until a time is named. Sent once, whatever is changed at the last moment.',
      tag: 'Transactions',
      caller: 'user',
      readsSingly: true,
      params: { transactionId: 'The transaction’s id.' },
      body: RESCHEDULE_BODY,
      bodyExample: { send_at: '2026-12-24T09:00:00+01:00' },
      answers: [
        dataAnswer(
          'The transaction.',
          transactionSchema,
          { ...transactionExample, send_at: '2026-12-24T08:00:00.000Z' },
          { headers: LOCATION },
        ),
      ],
      errorHeaders: { invalid_send_at: REFUSED_TIME },
      errors: ['transaction_not_found', 'nothing_to_send', 'invalid_send_at', 'rescheduled_too_often'],
      async open(early) {
        const { id } = await find(early);
        const context = contextOf(early, deps.now());
        return async ({ body }) => {
          const { send_at } = body as { readonly send_at: string | null };
          const changed = await rescheduleSend(deps, id, context, send_at);
          const transaction = transactionIn(upToOwn(changed));
          if (transaction === undefined) throw new Error('a purchase was changed and is not there');
          const position = changed.own.at(-1)?.position;
          if (position !== undefined) await waitUntilProjected(position, [deps.transactions], BEHIND_WAIT_MS);
          const refundedMoney = transaction.payment === 'charged' ? await refundedMoneyOf(deps, id) : undefined;
          const answered = {
            headers: locationOf(id),
            body: { data: transactionEntity(id, transaction, refundedMoney) },
          };
          return { ...answered, replayed: changed.replayed, position };
        };
      },
    },
    {
      method: 'GET',
      path: '/api/v2/transactions/:transactionId/gifts',
      operation: 'listTransactionGifts',
      summary: 'The gifts of a transaction',
      description: 'For its buyer, page by page, in the order of the receivers.',
      tag: 'Transactions',
      caller: 'user',
      readsSingly: true,
      embeds: LISTED_GIFT_RELATIONS,
      params: { transactionId: 'The transaction’s id.' },
      query: querySchema(pageParameters),
      answers: [
        jsonAnswer(
          'One page.',
          pageSchema(giftSchema, listedGiftsEmbeddedSchema),
          paginate({
            publicUrl: 'https://gifts.example',
            path: `/api/v2/transactions/${transactionExample.id}/gifts`,
            rawQuery: '',
            page: 1,
            perPage: 20,
            total: 1,
            data: [giftExample],
            embedded: undefined,
          }),
        ),
      ],
      errors: ['transaction_not_found'],
      async open(early) {
        const { id, transaction } = await find(early);
        return async ({ query, embeds, path, rawQuery }) => {
          const requested = pageRequest(query);
          const ids = pageOf(giftIdsOf(transaction), requested);
          const viewer = viewerOf(early);
          const joined = await withMessage(
            deps,
            await joinGifts(deps, transaction, await documentsOf(id, ids, early.position)),
            embeds,
          );
          const embedded = embeddedCollector();
          requestKinds(embedded, embeds);
          const catalogue = deps.catalogue.current();
          for (const gift of joined) embedGift(embedded, gift, embeds, viewer, catalogue);
          const data = joined.map((gift) => giftEntity(gift, viewer));
          const body = paginate({
            publicUrl: deps.publicUrl,
            path: path.replace(/\/+$/, ''),
            rawQuery,
            ...requested,
            total: transaction.count,
            count: ids.length,
            data,
            embedded: embeds.length === 0 ? undefined : embedded.result(),
          });
          return { body };
        };
      },
    },
  ];
}
