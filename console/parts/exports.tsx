/** Exports as files (docs/support.md#ops-formats). */
import { useState } from 'preact/hooks';
import { useAttempt } from '../service/attempt.js';
import { download, type Query } from '../service/call.js';
import { Problem } from './page.js';

const FORMATS = [
  { format: 'csv', label: 'CSV', end: 'csv' },
  { format: 'excel', label: 'CSV for Excel', end: 'csv' },
  { format: 'ndjson', label: 'NDJSON', end: 'ndjson' },
] as const;

interface ExportsProps {
  readonly path: string;
  readonly query: Query;
  /** The file's name, without its end. */
  readonly name: string;
  /** The command that makes the same file however large it is. */
  readonly command: string;
}

/** A file for each format. A browser holds all of it before it is saved, so large ones are for the command line. */
export function Exports({ path, query, name, command }: ExportsProps) {
  const [chosen, choose] = useState<string>();
  const { busy, wrong, attempt } = useAttempt();
  const save = async (format: string, end: string): Promise<void> => {
    choose(format);
    await attempt(async () => saveAs(await download(path, { query: { ...query, format } }), `${name}.${end}`));
  };
  return (
    <>
      <div class="actions">
        {FORMATS.map(({ format, label, end }) => (
          <button
            key={format}
            type="button"
            class="outline"
            disabled={busy}
            aria-busy={busy && chosen === format}
            onClick={() => void save(format, end)}
          >
            Export as {label}
          </button>
        ))}
      </div>
      {wrong === undefined ? null : <Problem>{wrong}</Problem>}
      <p>
        <small>
          Exports of more than some 100,000 rows are made on the command line, which holds none of them in memory:{' '}
          <code>{command}</code>
        </small>
      </p>
    </>
  );
}

function saveAs(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has opened the file by then, and reads it on.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
