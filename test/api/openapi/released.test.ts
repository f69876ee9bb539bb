/** A change of the API that breaks programs is announced before, or made by mistake (docs/api/changes.md). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { PACKAGE_ROOT } from '../../../src/lib/packageRoot.js';
import { TRANSACTION_STATUSES } from '../../../src/domain/purchase/status.js';
import { ALL_ENTRY_TYPES } from '../../../src/projections/feed/entryTypes.js';
import type { Json } from '../../support/service/service.js';
import { breaksOf } from './breaks.js';

const test = suite('the API, compared with the last release');
const OPEN = [ALL_ENTRY_TYPES, TRANSACTION_STATUSES];
const textOf = (name: string): string => readFileSync(new URL(`docs/api/${name}`, PACKAGE_ROOT), 'utf8');
const released = (): Json => JSON.parse(textOf('openapi.json'));
const ROUTE = '/api/v2/gifts/{giftId}/redemptions';

test('takes nothing away that is not announced', async () => {
  const script = (await import(new URL('scripts/openapi.mjs', PACKAGE_ROOT).href)) as {
    readonly describedApi: () => Promise<object>;
    readonly comparable: (document: object) => object;
  };
  const present = script.comparable(await script.describedApi());
  const announced = textOf('changes.md');
  const found = breaksOf(released(), present, OPEN).filter((one) => !announced.includes(`\`${one}\``));
  assert.deepEqual(found, [], 'announce each in docs/api/changes.md, as it stands here, in backquotes');
});

const CHANGES: readonly (readonly [change: string, make: (document: Json) => void, found: RegExp | undefined])[] = [
  ['nothing', () => undefined, undefined],
  ['a new operation', (all) => (all.paths['/api/v2/new'] = all.paths['/api/v2/me']), undefined],
  ['a new field of an answer', (all) => (all.components.schemas.Gift.properties.more = { type: 'string' }), undefined],
  ['another name of a path', (all) => renamed(all, ROUTE, '/api/v2/gifts/{gift}/redemptions'), undefined],
  ['a new type of event', (all) => all.components.schemas.FeedEvent.properties.type.enum.push('gift.new'), undefined],
  ['an operation that is gone', (all) => delete all.paths[ROUTE].post, /^POST \S+\/redemptions: is gone$/],
  ['a field that is gone', (all) => delete all.components.schemas.Gift.properties.shortcode, /\.shortcode: is gone$/],
  ['a field that may be absent', (all) => all.components.schemas.Gift.required.shift(), /: may be absent$/],
  ['another type', (all) => (all.components.schemas.Gift.properties.id.type = 'integer'), /\.id: the type "string" is/],
  [
    'null in an answer',
    (all) => (all.components.schemas.Gift.properties.id.type = ['string', 'null']),
    /\.id: the type "string" is/,
  ],
  ['a required field of a body', (all) => bodyOf(all, ROUTE).required.push('reason'), /body\.reason: is required$/],
  ['a field no more taken', (all) => delete bodyOf(all, ROUTE).properties.location_id, /location_id: is taken no more/],
  ['a shorter text', (all) => (bodyOf(all, ROUTE).properties.location_id.maxLength = 3), /: maxLength is 3$/],
  [
    'a parameter that is gone',
    (all) => parametersOf(all, '/api/v2/events').shift(),
    /^GET \/api\/v2\/events .*: is gone/,
  ],
  [
    'fewer values of a parameter',
    (all) =>
      parametersOf(all, '/api/v2/events')
        .find(({ name }: Json) => name === 'form')
        .schema.enum.pop(),
    /takes no webhook$/,
  ],
  ['a new value of an answer', (all) => all.components.schemas.Gift.properties.gift_status.enum.push('x'), /may be x$/],
  ['a webhook that is gone', (all) => delete all.webhooks.ping, /^webhook ping: is gone$/],
];

function renamed(all: Json, from: string, to: string): void {
  all.paths[to] = all.paths[from];
  delete all.paths[from];
}

function bodyOf(all: Json, path: string): Json {
  const { schema } = all.paths[path].post.requestBody.content['application/json'];
  return schema.$ref === undefined ? schema : all.components.schemas[schema.$ref.split('/').at(-1)];
}

const parametersOf = (all: Json, path: string): Json =>
  (all.paths[path].get.parameters = all.paths[path].get.parameters.filter(({ $ref }: Json) => $ref === undefined));

for (const [change, make, expected] of CHANGES)
  test(`knows of ${change} whether it is a break`, () => {
    const before = released();
    parametersOf(before, '/api/v2/events');
    const after = structuredClone(before);
    make(after);
    const found = breaksOf(before, after, [[...ALL_ENTRY_TYPES, 'gift.new'], TRANSACTION_STATUSES]);
    if (expected === undefined) assert.deepEqual(found, []);
    else assert.match(found[0] ?? 'nothing', expected);
    assert.equal(
      found.every((one) => (expected ?? /never/).test(one)),
      true,
      found.join('\n'),
    );
  });

test.run();
