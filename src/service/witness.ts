/** The HTTP service of a witness, which `gift witness` runs. */
import type { Logger } from 'pino';
import { listen } from '../api/listener/listener.js';
import { application } from '../api/pipeline/server.js';
import { witnessApi } from '../api/witness.js';
import type { Resources } from '../lib/async/resources.js';
import { addressOf } from '../lib/urls.js';
import type { Witness } from '../ops/evidence/index.js';

/** Serves a witness until `open` is closed. @returns its address @throws errors of the listener (a taken port) */
export async function serveWitness(
  witness: Witness,
  { host, port }: { readonly host: string; readonly port: number },
  logger: Logger,
  open: Resources,
): Promise<string> {
  const listener = open.add(await listen(port, host, (err) => logger.error({ err }, 'the listener met an error')));
  listener.serve(application(logger, [witnessApi(witness)]).callback());
  return addressOf(host, listener.port);
}
