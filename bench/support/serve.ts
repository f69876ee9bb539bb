/** Serves a baseline, as `startBaseline` expects it. */
import type { AddressInfo } from 'node:net';
import type Koa from 'koa';

/** On any free port, whose address it prints, until SIGTERM; then `close` ends what else is open. */
export function serve(app: Koa, close: () => unknown = () => undefined): void {
  const server = app.listen(0, '127.0.0.1', () =>
    console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  );
  process.on('SIGTERM', () => {
    server.close();
    server.closeAllConnections();
    void close();
  });
}
