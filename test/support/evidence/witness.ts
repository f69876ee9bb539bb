/** `gift witness` within the test's process. */
import { eventually } from '../assertions/until.js';
import { gift, type Said, sink } from '../service/cli.js';
import { LOG_VKEY } from './bundles.js';

export interface RunningWitness {
  readonly url: string;
  readonly vkey: string;
  stop(): Promise<Said>;
}

export async function startWitness(dir: string, ...args: readonly string[]): Promise<RunningWitness> {
  const ending = new AbortController();
  const out = sink();
  let ended: Said | undefined;
  const all = ['witness', '--dir', dir, '--log', LOG_VKEY, '--port', '0', ...args];
  const running = gift({}, all, { stdout: out.stream, signal: ending.signal }).then((said) => (ended = said));
  const address = await eventually(() => {
    if (ended !== undefined) throw new Error(`the witness ended: ${ended.err}`);
    return /^(.*)\ncosigning at (.*)\n$/.exec(out.text()) ?? undefined;
  });
  return {
    vkey: address[1] as string,
    url: address[2] as string,
    stop() {
      ending.abort();
      return running;
    },
  };
}
