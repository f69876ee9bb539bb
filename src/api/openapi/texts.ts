/** Descriptions of the tags, in reading order. */
export const TAGS: Readonly<Record<string, string>> = {
  Tokens: 'Access tokens for clients and users (OAuth 2.0).',
  Account: 'Who the caller is, and how they may pay.',
  Catalogue: 'What can be bought: products, brands and categories.',
  Transactions: 'Buying gifts, singly or in bulk.',
  Gifts: 'Looking a gift up and claiming one that was shared.',
  Redemptions: 'Redeeming a gift, and reversing a redemption.',
  Events: 'What has happened, in order, for apps and merchants’ systems that follow along.',
  'Webhook endpoints': 'Where clients and merchants have the same events sent, as Standard Webhooks.',
  Vouchers: 'Codes for gifts that tills of other systems accept.',
  Sandbox: 'Moving the time of a sandbox, and beginning anew.',
  Webhooks: 'Called by the payment and message providers.',
  'Map tiles': 'Where the stores are.',
  Refunds: 'For support: cancelling gifts and giving their price back, once, whatever happens.',
  Console: 'Sessions of the console, which staff use in a browser.',
  Diagnosis: 'For support: what is wrong with the service, and the command that mends it.',
  'Parked work':
    'For support: what the service could not do and gave up, to be retried or discarded. Nothing is dropped silently.',
  People: 'For support: finding a person, showing what is kept of them, and erasing it.',
  Support: "For support: single gifts. Who did what and why stands in the gift's history.",
  Projections:
    'For support: the status of read models and process managers; rebuilding, verifying and repairing read models while they are served.',
  Evidence:
    'The Merkle tree over the log, for those who check that nothing was altered: signed heads and tiles in the formats of C2SP.',
  Audit: 'For auditors: who did what, when and by whose authority. Every call leaves a record of who saw what.',
};

export function overview(sandbox = false): string {
  return [
    ...(sandbox
      ? [
          '**This is a sandbox**: no money moves, no message is sent, and clients may move the time of the whole service ahead (`POST /sandbox/clock`) and begin anew (`POST /sandbox/reset`).',
        ]
      : []),
    'Users buy gifts and send them to receivers or share them by link; a gift is redeemed at a location by its owner or at the till of a merchant.',
    '## Answers',
    'An entity is answered as `{data}`, a list as `{data: [...]}` or a page with its envelope. `embed[]` asks for related entities; they stand under `embedded`.',
    'Paths are accepted with and without a trailing slash. A gift in a path may be its id or its shortcode. A list in a query (`embed[]`) may also be written without its brackets, or with an index in them (`embed[0]`).',
    '## Errors',
    'Every error is `{"error": "<message>"}`, and the messages are exact. Programs read the header `Error-Code`, which says which error it is. An unknown path is 404 `Not found.`, a known one with another method 405 `Method not allowed.` with `Allow`, ' +
      'with or without a token. Unknown fields of a body are refused with 422, and null for an optional one is its absence; unknown query parameters are ignored, but refused under `/ops`. ' +
      'Strings of a body or query that are no Unicode text, such as half of an emoji, are refused with 422. Where a 422 is about one field, `Error-Field` names it. A body is at most as large as its operation says, has at most 32 levels and 256 fields in one object. ' +
      'Malformed HTTP is 400 `Malformed request.` A target and headers of more than 16 KB together are 431 `Request too large.` ' +
      'The answer is 503 `Service unavailable.` with `Retry-After` when an engine cannot be reached, a read model is too far behind the log, or the log is sealed because the installation moved to another one.',
    '## Trying again',
    'Every POST, PATCH and DELETE under `/api/v2` and `/ops` takes an `Idempotency-Key`: the same key with the same body gets the first outcome again, for at least 24 hours, whatever failed in between. ' +
      'A refusal with `Retry-After` depends on work under way, such as a charge, and is not stored: the same key may succeed later.',
    '## Limits',
    'Beyond a limit the answer is 429 `Too many requests.` with `Retry-After`: of requests by client and by user, without a valid token by address, and of look-ups of unknown gifts by caller and by address. `RateLimit-Policy` names the limits of a request (`q` in `w` seconds), `RateLimit` what is left of each (`r`, for `t` seconds more), as draft-ietf-httpapi-ratelimit-headers has them.',
    '## Reading what was written',
    'A write answers its log position as `Gift-Position`; a read that sends this header sees at least everything up to there.',
    '## Asking again',
    "Answers of the catalogue carry an `ETag`; sent back as `If-None-Match` with the same question, it is answered 304 without a body where nothing changed for the caller. Only the caller's own cache may keep them (`private, no-cache`). Large ones are compressed where `Accept-Encoding` asks for `br` or `gzip`.",
    '## Browsers',
    "Pages of the origins that the operator lists may call with a user's token (CORS, without cookies): their preflights are answered, and they may read the headers named here. Pages of other origins can't. A page must never hold the client's secret: a server of its own does.",
    '## Tokens',
    "A client gets its token with its id and secret (`client_credentials`). A user gets one by name and password, for which the client's token is sent as `Authorization: Bearer`. " +
      'A refresh token is used once: each answer carries the next.',
  ].join('\n\n');
}

export const HEADERS = {
  RequestId: {
    description: "Names this request in the service's log: the caller's own `X-Request-Id` where it sent one.",
    schema: { type: 'string', minLength: 1, maxLength: 128 },
    example: '0f8fad5b-d9cb-469f-a165-70867728950e',
  },
  GiftPosition: {
    description:
      'The log position of this write: send it with a read that must see the write. Absent when nothing had to be written.',
    schema: { type: 'string' },
  },
  IdempotentReplayed: {
    description: '`true`: this is the outcome of an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
  RetryAfter: {
    description: 'Seconds until the next attempt.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  RateLimit: {
    description: 'What is left: `r` requests for `t` seconds more, by policy. Absent where nothing is limited.',
    schema: { type: 'string' },
    example: '"user";r=59988;t=41, "client";r=599730;t=12',
  },
  RateLimitPolicy: {
    description: 'The limits: `q` requests in `w` seconds.',
    schema: { type: 'string' },
    example: '"user";q=60000;w=60, "client";q=600000;w=60',
  },
  ErrorField: {
    description:
      'The field that the error is about, in body or query: `purchase.receivers[1].phone_number`, counted from 0. Absent where no single field is at fault.',
    schema: { type: 'string', maxLength: 256 },
    example: 'purchase.receivers[1].phone_number',
  },
  Accept: {
    description: 'The content types of the body, where that was at fault.',
    schema: { type: 'string' },
    example: 'application/json',
  },
  'Accept-Patch': {
    description: 'The content types of the body, where that was at fault.',
    schema: { type: 'string' },
    example: 'application/json',
  },
  'Accept-Encoding': {
    description: 'The content codings of the body, where that was at fault.',
    schema: { type: 'string' },
    example: 'gzip, x-gzip, deflate, br',
  },
  Allow: { description: 'The methods of this path.', schema: { type: 'string' }, example: 'POST' },
  CacheControl: { description: 'This answer must not be cached.', schema: { type: 'string', const: 'no-store' } },
  WwwAuthenticate: {
    description: 'The scheme to authenticate by; below `/oauth` HTTP Basic to a request that used it.',
    schema: { type: 'string' },
    example: 'Bearer',
  },
} as const;

export const PARAMETERS = {
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    required: false,
    description: "The caller's own id of the request; replaced unless it matches this pattern.",
    schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' },
  },
  GiftPosition: {
    name: 'Gift-Position',
    in: 'header',
    required: false,
    description:
      'The position from an earlier answer: this request sees at least everything up to it, or gets 503 after a second.',
    schema: { type: 'string' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      '1 to 255 visible ASCII characters that name this request: repeated with the same body, it takes effect only once. Quotes around them are not part of the key.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
    example: 'order-2031-gift-1',
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    required: false,
    description: 'The `ETag` of an earlier answer, or a list of them: 304 where it is still the answer.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e, ]{1,255}$' },
    example: 'W/"q3Jb0nq0S5uY2m1x7d8Q2g"',
  },
} as const;

export const securitySchemes = (publicUrl: string): object => ({
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: "A user's access token, or a client's where the route takes one.",
  },
  clientCredentials: {
    type: 'oauth2',
    description: "A client's own token.",
    flows: { clientCredentials: { tokenUrl: `${publicUrl}/oauth/token`, scopes: {} } },
  },
  client: {
    type: 'http',
    scheme: 'basic',
    description: "A client's id and secret, in place of `client_id` and `client_secret` in the body.",
  },
});
