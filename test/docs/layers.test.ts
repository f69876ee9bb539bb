/** The layers and doors of the source: what may import what, and how many names a place shows. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';

const test = suite('docs/layers');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

async function script<M>(name: string): Promise<M> {
  return (await import(new URL(`../../../scripts/${name}.mjs`, import.meta.url).href)) as M;
}

function foldersIn(path: string): string[] {
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

type Layers = Readonly<Record<string, readonly string[]>>;

const layersOf = async (): Promise<Readonly<Record<'LAYERS' | 'API', Layers>>> =>
  script<Record<'LAYERS' | 'API', Layers>>('layers');

test('nothing but folders stands at the top of the source, and each is a layer of the table', async () => {
  const { LAYERS, API } = await layersOf();
  const top = readdirSync(join(ROOT, 'src'), { withFileTypes: true });
  assert.deepEqual(
    top.filter((entry) => !entry.isDirectory()).map(({ name }) => name),
    [],
  );
  assert.deepEqual(foldersIn('src'), Object.keys(LAYERS).sort());
  assert.deepEqual(foldersIn('src/api'), Object.keys(API).sort());
});

test('a layer imports only layers that stand before it in its table', async () => {
  const { LAYERS, API } = await layersOf();
  for (const table of [LAYERS, API])
    for (const [at, [folder, below]] of Object.entries(table).entries()) {
      const before = Object.keys(table).slice(0, at);
      assert.deepEqual(
        below.filter((one) => !before.includes(one)),
        [],
        `${folder} imports upward`,
      );
    }
});

interface Doors {
  readonly DOORS: Readonly<Record<string, number>>;
  namesShown(text: string): string[];
  doorFaults(): string[];
}

test('a door shows no more names than its table allows, and nothing from outside goes past it', async () => {
  const { DOORS, doorFaults } = await script<Doors>('doors');
  assert.ok(Object.keys(DOORS).length > 3);
  assert.deepEqual(doorFaults(), []);
});

test('a door consists of lists of names', async () => {
  const { namesShown } = await script<Doors>('doors');
  assert.deepEqual(namesShown("/** Why. */\nexport { a, type B } from './c.js';\nexport type { D } from './e.js';\n"), [
    'a',
    'type B',
    'D',
  ]);
  assert.throws(() => namesShown("export * from './c.js';\n"), /more than lists of names/);
});

test.run();
