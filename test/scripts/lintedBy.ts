import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const oxlint = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin', 'oxlint');

/** Lints texts by some rules only, of the plugin in `file` of the project's `scripts`. */
export function lintedBy(
  plugin: string,
  rules: readonly string[],
  file = plugin,
): { readonly faultsOf: (text: string) => string[]; readonly close: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'gift-linted-'));
  const config = join(dir, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      jsPlugins: [fileURLToPath(new URL(`../../../scripts/${file}.mjs`, import.meta.url))],
      categories: { correctness: 'off' },
      rules: Object.fromEntries(rules.map((rule) => [`${plugin}/${rule}`, 'error'])),
    }),
  );
  return {
    /** The findings, each as its line's number and its message. */
    faultsOf(text) {
      const linted = join(dir, 'linted.ts');
      writeFileSync(linted, text);
      const { stdout } = spawnSync(process.execPath, [oxlint, '--config', config, '--format', 'unix', linted], {
        encoding: 'utf8',
      });
      return stdout.split('\n').flatMap((line) => {
        const [, at, message] = new RegExp(`linted\\.ts:(\\d+):\\d+: (.*) \\[Error/${plugin}`).exec(line) ?? [];
        return message === undefined ? [] : [`${at}: ${message}`];
      });
    },
    close: () => rmSync(dir, { recursive: true }),
  };
}
