/**
 * Who may call what: one row an operation of /openapi.json, one column a kind of caller, each cell the status of the
 * answer. `*` after an operation: the gift is named by its shortcode, else by its id. Under `/ops` ids are unknown and
 * bodies malformed, so a caller with the role gets 404 or 422, and nothing is changed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessTokens } from '../../src/api/auth/accessTokens.js';
import { loadConfig } from '../../src/service/config.js';
import { loadKeys } from '../../src/service/keys.js';
import { buy, purchaseOf, redeem } from '../support/service/giftFlow.js';
import { type Json, type Service, startService } from '../support/service/service.js';
import { CATALOGUE, user } from '../support/fixtures/testCatalogue.js';

/** The token, or whose it is. `owner` has been sent the gifts, `other` is a till of a merchant they are not valid for. */
const CALLERS = {
  none: undefined,
  garbage: 'garbage',
  expired: 'expired',
  client: 'client',
  owner: 'bob',
  stranger: 'cat',
  buyer: 'ann',
  till: 'till-coffee',
  other: 'till-cinema',
  support: 'sue',
  auditor: 'aud',
  both: 'boss',
  desk: 'desk',
} as const;

const TABLE = `
                      none garbage expired client owner stranger buyer till other support auditor both desk
abortRebuild          401  401     401     403    403   403      403   403  403   404     403     404  404
actOnMany             401  401     401     403    403   403      403   403  403   422     403     422  422
approveErasure        401  401     401     403    403   403      403   403  403   422     403     422  422
blockGift             401  401     401     403    403   403      403   403  403   404     403     404  404
changeWebhookEndpoint 401  401     401     200    403   403      403   403  403   403     403     403  403
claimGift             401  401     401     403    404   404      200   404  404   404     403     403  404
claimGift*            401  401     401     403    200   200      200   200  200   403     403     403  403
createWebhookEndpoint 401  401     401     201    403   403      403   403  403   403     403     403  403
deleteWebhookEndpoint 401  401     401     200    403   403      403   403  403   403     403     403  403
diagnose              401  401     401     403    403   403      403   403  403   200     200     200  200
discardParked         401  401     401     403    403   403      403   403  403   404     403     404  404
discardParkedGroup    401  401     401     403    403   403      403   403  403   404     403     404  404
endConsoleSession     200  200     200     200    200   200      200   200  200   200     200     200  200
exportPerson          401  401     401     403    403   403      403   403  403   422     403     422  422
extendGift            401  401     401     403    403   403      403   403  403   404     403     404  404
findGifts             401  401     401     403    403   403      403   403  403   422     422     422  422
findPeople            401  401     401     403    403   403      403   403  403   422     422     422  422
generateVoucher       401  401     401     403    200   403      403   200  403   403     403     403  403
generateVoucher*      401  401     401     403    200   403      403   200  403   403     403     403  403
generateVoucherV1     401  401     401     403    200   403      403   200  403   403     403     403  403
generateVoucherV1*    401  401     401     403    200   403      403   200  403   403     403     403  403
getAccessToken        200  200     200     200    200   200      200   200  200   200     200     200  200
getCategory           401  401     401     200    200   200      200   200  200   200     200     200  200
getCheckpoint         401  401     401     403    403   403      403   403  403   403     404     404  403
getGift               401  401     401     403    200   404      200   200  404   404     404     404  200
getGift*              401  401     401     403    200   200      200   200  200   200     200     200  200
getGiftAsOf           401  401     401     403    403   403      403   403  403   404     404     404  404
getGiftHistory        401  401     401     403    403   403      403   403  403   404     404     404  404
getGiftProof          401  401     401     403    403   403      403   403  403   404     404     404  404
getIdempotencyKey     401  401     401     403    200   200      200   200  200   200     200     200  200
getMe                 401  401     401     403    200   200      200   200  200   200     200     200  200
getParked             401  401     401     403    403   403      403   403  403   404     404     404  404
getPerson             401  401     401     403    403   403      403   403  403   422     403     422  422
getProduct            401  401     401     200    200   200      200   200  200   200     200     200  200
getProjection         401  401     401     403    403   403      403   403  403   404     404     404  404
getRebuildRequest     401  401     401     403    403   403      403   403  403   404     403     404  404
getRedemptionProof    401  401     401     403    403   403      403   404  403   403     403     403  404
getRedemptionProof*   401  401     401     403    403   403      403   404  403   403     403     403  404
getRepair             401  401     401     403    403   403      403   403  403   404     403     404  404
getTotals             401  401     401     403    403   403      403   403  403   403     200     200  403
getTransaction        401  401     401     403    404   404      200   404  404   404     404     404  404
getTreeEntries        401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeEntries2       401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeEntries3       401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeEntries4       401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeTile           401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeTile2          401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeTile3          401  401     401     403    403   403      403   403  403   403     404     404  403
getTreeTile4          401  401     401     403    403   403      403   403  403   403     404     404  403
getVerification       401  401     401     403    403   403      403   403  403   404     404     404  404
getVoucher            401  401     401     403    404   403      403   404  403   403     403     403  403
getVoucher*           401  401     401     403    404   403      403   404  403   403     403     403  403
getWebhookEndpoint    401  401     401     200    403   403      403   403  403   403     403     403  403
listAccess            401  401     401     403    403   403      403   403  403   403     200     200  403
listAdjustmentCodes   401  401     401     403    403   403      403   200  403   403     403     403  200
listAdjustmentCodes*  401  401     401     403    403   403      403   200  403   403     403     403  200
listAllWebhooks       401  401     401     403    403   403      403   403  403   200     200     200  200
listAttemptsOfAny     401  401     401     403    403   403      403   403  403   404     404     404  404
listBrands            401  401     401     200    200   200      200   200  200   200     200     200  200
listCategories        401  401     401     200    200   200      200   200  200   200     200     200  200
listErasures          401  401     401     403    403   403      403   403  403   200     200     200  200
listEvents            401  401     401     200    200   200      200   200  200   200     200     200  200
listFailedRequests    401  401     401     200    403   403      403   403  403   403     403     403  403
listGiftRedemptions   401  401     401     403    200   404      200   200  404   404     404     404  200
listGiftRedemptions*  401  401     401     403    200   200      200   200  200   200     200     200  200
listGifts             401  401     401     403    200   200      200   200  200   200     200     200  200
listLogEvents         401  401     401     403    403   403      403   403  403   200     200     200  200
listParked            401  401     401     403    403   403      403   403  403   200     200     200  200
listParkedGroups      401  401     401     403    403   403      403   403  403   200     200     200  200
listPaymentMethods    401  401     401     403    200   200      200   200  200   200     200     200  200
listProducts          401  401     401     200    200   200      200   200  200   200     200     200  200
listProjections       401  401     401     403    403   403      403   403  403   200     200     200  200
listPurchases         401  401     401     403    403   403      403   403  403   200     200     200  200
listRedemptions       401  401     401     403    403   403      403   403  403   403     200     200  403
listRefunds           401  401     401     403    403   403      403   403  403   404     404     404  404
listTiles             401  401     401     200    200   200      200   200  200   200     200     200  200
listTillRedemptions   401  401     401     403    403   403      403   200  200   403     403     403  200
listTransactionGifts  401  401     401     403    404   404      200   404  404   404     404     404  404
listTransactions      401  401     401     403    200   200      200   200  200   200     200     200  200
listVoucherOptions    401  401     401     403    200   404      200   200  404   404     404     404  200
listVoucherOptions*   401  401     401     403    200   200      200   200  200   200     200     200  200
listWebhookAttempts   401  401     401     200    403   403      403   403  403   403     403     403  403
listWebhookEndpoints  401  401     401     200    403   403      403   403  403   403     403     403  403
pingWebhookEndpoint   401  401     401     202    403   403      403   403  403   403     403     403  403
purchaseGifts         401  401     401     403    201   201      201   201  201   201     403     403  201
reassignGift          401  401     401     403    403   403      403   403  403   404     403     404  404
rebuildProjection     401  401     401     403    403   403      403   403  403   404     403     404  404
rebuildProjections    401  401     401     403    403   403      403   403  403   422     403     422  422
reconcilePayments     401  401     401     403    403   403      403   403  403   422     422     422  422
recoverForOwner       401  401     401     403    403   403      403   403  403   404     403     404  404
recoverWebhooks       401  401     401     202    403   403      403   403  403   403     403     403  403
redeemGift            401  401     401     403    201   403      403   201  403   403     403     403  201
redeemGift*           401  401     401     403    201   403      403   201  403   403     403     403  201
refreshConsoleSession 401  401     401     401    401   401      401   401  401   401     401     401  401
refundGifts           401  401     401     403    403   403      403   403  403   404     403     404  404
repairProjection      401  401     401     403    403   403      403   403  403   404     403     404  404
replaceGift           401  401     401     403    403   403      403   403  403   404     403     404  404
requestErasure        401  401     401     403    403   403      403   403  403   422     403     422  422
rescheduleTransaction 401  401     401     403    404   404      409   404  404   404     403     403  404
resendForOwner        401  401     401     403    403   403      403   403  403   404     403     404  404
resendGift            401  401     401     403    403   403      403   403  403   404     403     404  404
resendWebhook         401  401     401     422    403   403      403   403  403   403     403     403  403
retryParked           401  401     401     403    403   403      403   403  403   404     403     404  404
retryParkedGroup      401  401     401     403    403   403      403   403  403   404     403     404  404
revokeToken           200  200     200     200    200   200      200   200  200   200     200     200  200
rollBackProjection    401  401     401     403    403   403      403   403  403   404     403     404  404
rotateWebhookSecret   401  401     401     200    403   403      403   403  403   403     403     403  403
showLaunchPage        404  404     404     404    404   404      404   404  404   404     404     404  404
showLaunchPage*       200  200     200     200    200   200      200   200  200   200     200     200  200
startConsoleSession   415  415     415     415    415   415      415   415  415   415     415     415  415
showEvidence          401  401     401     403    403   403      403   403  403   200     200     200  200
unblockGift           401  401     401     403    403   403      403   403  403   404     403     404  404
unredeemGift          401  401     401     403    403   403      403   403  403   404     403     404  404
unredeemLatest        401  401     401     403    403   403      403   200  403   403     403     403  200
unredeemLatest*       401  401     401     403    403   403      403   200  403   403     403     403  200
verifyProjection      401  401     401     403    403   403      403   403  403   404     404     404  404
withdrawErasure       401  401     401     403    403   403      403   403  403   422     403     422  422
`;

const PAYMENT = 'pm_card_mastercard';
const HOOK = { url: 'https://hooks.example' };

/** Of operations that must get as far as their decision. Others under `/api/v2` have no body. */
const BODIES: Readonly<Record<string, object>> = {
  getAccessToken: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
  revokeToken: { token: 'unknown', client_id: 'app', client_secret: 'app-secret' },
  purchaseGifts: purchaseOf('latte', undefined, { reference: PAYMENT }),
  rescheduleTransaction: { send_at: 'now' },
  redeemGift: { location_id: 'bean-soho' },
  unredeemLatest: { redeemed: false },
  createWebhookEndpoint: HOOK,
  changeWebhookEndpoint: { description: 'till' },
  resendWebhook: { event_id: 'unknown' },
  recoverWebhooks: { since: '2026-01-01T00:00:00Z' },
};

const IDS: Readonly<Record<string, string>> = { getProduct: 'latte', getCategory: 'drinks' };

const PARAMETERS: Readonly<Record<string, string>> = {
  redemptionId: 'latest',
  key: 'till-7-000123',
  tiles: '-0.1,51.5:-0.2,51.6',
};

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
}

const test = suite<{ service: Service }>('callers');

test.before(async (context) => {
  context.service = await startService({
    catalogue: {
      ...CATALOGUE,
      users: [
        ...CATALOGUE.users,
        user('boss', { roles: ['support', 'auditor'] }),
        user('desk', { roles: ['support'], merchant_id: 'coffee', permissions: ['redeem', 'unredeem'] }),
      ],
      payment_methods: [
        ...CATALOGUE.payment_methods,
        { reference: PAYMENT, kind: 'card', users: Object.values(CALLERS).filter((name) => isUser(name)) },
      ],
    },
  });
});
test.after(async ({ service }) => service.close());

function isUser(name: string | undefined): boolean {
  return (
    (CATALOGUE.users as readonly { id: string }[]).some(({ id }) => id === name) ||
    ['boss', 'desk'].includes(name ?? '')
  );
}

async function tokenOf(service: Service, caller: string | undefined): Promise<string | undefined> {
  if (caller === undefined || caller === 'garbage') return caller;
  if (caller === 'client') return service.clientToken();
  if (caller !== 'expired') return service.userToken(caller);
  const { tokenKeys } = loadKeys(loadConfig(service.settings));
  const expiresAt = Math.floor(Date.now() / 1000) - 60;
  return accessTokens(tokenKeys, Date.now).sign({ sessionId: 'A'.repeat(22), pair: 0, userId: 'ann', expiresAt });
}

async function operationsOf(service: Service): Promise<Operation[]> {
  const { paths } = (await service.ask('GET', '/openapi.json')).json as { paths: Record<string, Record<string, Json>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'parameters')
      .map(([method, { operationId }]) => ({ id: operationId as string, method: method.toUpperCase(), path })),
  );
}

/** What ends an entity comes after what looks at it. */
const placeOf = ({ path, method, id }: Operation): string =>
  `${path.split('/', 4).join('/')} ${method === 'DELETE' ? 2 : 1} ${path} ${id}`;

const isOfAGift = ({ path }: Operation): boolean => path.includes('{giftId}') && !path.startsWith('/ops/');

test('answers each kind of caller at each operation as the table says', async ({ service }) => {
  const operations = await operationsOf(service);
  const rows = operations.flatMap((one) =>
    isOfAGift(one)
      ? [
          { ...one, row: one.id },
          { ...one, row: `${one.id}*` },
        ]
      : [{ ...one, row: one.id }],
  );
  const callers = Object.entries(CALLERS);
  const tokens = new Map<string, string | undefined>();
  for (const [name, caller] of callers) tokens.set(name, await tokenOf(service, caller));
  const bought = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte'),
  });
  const hook = await service.ask('POST', '/api/v2/webhook-endpoints', {
    token: await service.clientToken(),
    body: HOOK,
  });
  for (const made of [bought, hook]) assert.equal(made.status, 201, made.text);
  const sent = await buy(
    service,
    'latte',
    Array.from({ length: rows.length * callers.length }, () => ({ user_id: 'bob' })),
  );
  const shared = await buy(
    service,
    'latte',
    Array.from({ length: 2 * callers.length }, () => ({})),
  );

  const statusOf = async ({ id, method, path, row }: Operation & { row: string }, caller: string): Promise<string> => {
    const gift = (id === 'claimGift' ? shared : sent).pop() ?? '';
    if (id === 'unredeemLatest' || id === 'getRedemptionProof') assert.equal((await redeem(service, gift)).status, 201);
    const named: Readonly<Record<string, string>> = path.startsWith('/ops/')
      ? {}
      : {
          giftId: row.endsWith('*') ? service.shortcodeOf(gift) : gift,
          transactionId: bought.json.data.id as string,
          endpointId: hook.json.data.id as string,
          id: IDS[id] ?? 'unknown',
        };
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ({ ...PARAMETERS, ...named })[name] ?? 'unknown');
    const body = path.startsWith('/ops/') ? { nothing: 'known' } : BODIES[id];
    const token = tokens.get(caller);
    const reply = await service.ask(method, filled, {
      ...(token === undefined ? {} : { token }),
      ...(method === 'GET' || body === undefined ? {} : { body }),
    });
    return String(reply.status);
  };

  const lines = [['', ...Object.keys(CALLERS)]];
  for (const one of rows.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)))
    lines.push([one.row, ...(await Promise.all(callers.map(async ([caller]) => statusOf(one, caller))))]);
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const shown = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join(' ')
      .trimEnd(),
  );
  const expected = TABLE.slice(1, -1).split('\n');
  const wrong = [
    ...shown.filter((line) => !expected.includes(line)).map((line) => `answered ${line}`),
    ...expected.filter((line) => !shown.includes(line)).map((line) => `expected ${line}`),
  ];
  assert.equal(wrong.length, 0, `\n${wrong.sort((a, b) => (a.slice(9) < b.slice(9) ? -1 : 1)).join('\n')}`);
});

test.run();
