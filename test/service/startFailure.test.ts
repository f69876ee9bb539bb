import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { EngineError } from '../../src/lib/engineError.js';
import { DataFileError } from '../../src/adapters/embedded/sqlite.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { startFailure } from '../../src/service/startFailure.js';

const test = suite('start failure');
const CONFIG = { dataDir: '/data', host: '10.0.0.1', port: 3000, opsPort: 4000, roles: new Set(['api'] as const) };
const coded = (message: string, more: object): Error => Object.assign(new Error(message), more);

test('says what keeps the service from starting, and what to change', () => {
  for (const [error, told] of [
    [new DataFileError('/data/events.db', 'is damaged', 'restore it'), '/data/events.db is damaged: restore it'],
    [new EngineError('NATS_URL', 'nobody answers'), new EngineError('NATS_URL', 'nobody answers').message],
    [coded('x', { code: 'EADDRINUSE', port: 3000 }), 'port 3000 of 10.0.0.1 is taken: set PORT to a free one'],
    [coded('x', { code: 'EADDRINUSE', port: 9000 }), 'port 9000 of 10.0.0.1 is taken: set METRICS_PORT to a free one'],
    [coded('x', { code: 'EADDRINUSE', port: 4000 }), 'port 4000 of 10.0.0.1 is taken: set OPS_PORT to a free one'],
    [coded('x', { code: 'EADDRNOTAVAIL' }), 'HOST 10.0.0.1 is not an address of this machine'],
    [coded('x', { code: 'EACCES', port: 80 }), 'no permission to listen on port 80: set METRICS_PORT to another one'],
    [coded('x', { code: 'EACCES', path: '/data' }), 'no permission for /data: check DATA_DIR (/data)'],
    [coded('x', { code: 'EACCES' }), 'no permission: check DATA_DIR (/data)'],
    [coded('ENOSPC: no space left on device, mkdir', { code: 'ENOSPC', path: '/tmp/x' }), undefined],
    [
      coded('disk I/O error', { code: 'SQLITE_IOERR_SHMSIZE' }),
      'disk I/O error: see that there is room on its disk, and that the disk is well (DATA_DIR is /data)',
    ],
    [
      new UnavailableError('/data/bus.lock: full', { cause: coded('x', { code: 'SQLITE_FULL' }) }),
      '/data/bus.lock: full: see that there is room on its disk, and that the disk is well (DATA_DIR is /data)',
    ],
    [
      new UnavailableError('/data/bus.lock: ENOSPC', { cause: coded('x', { code: 'ENOSPC' }) }),
      '/data/bus.lock: ENOSPC: see that there is room on its disk, and that the disk is well (DATA_DIR is /data)',
    ],
    [
      coded('unable to open database file', { code: 'SQLITE_CANTOPEN' }),
      'unable to open database file: see that this user may write all files there, and that it is not mounted read-only (DATA_DIR is /data)',
    ],
    [
      coded('locked', { code: 'SQLITE_BUSY' }),
      'locked: see that nothing else uses it, and try again (DATA_DIR is /data)',
    ],
    [
      coded('EISDIR: illegal operation on a directory, read', { code: 'EISDIR', path: '/data/hash.key' }),
      'EISDIR: illegal operation on a directory, read: check DATA_DIR (/data)',
    ],
    [
      new UnavailableError('the read store is late'),
      'the read store is late: see that the servers named in the settings run and answer in time (ENGINES_WAIT_MS is how long a start waits for them)',
    ],
    [new TypeError('a fault of ours'), undefined],
  ] as const)
    assert.equal(startFailure(error, CONFIG), told);
});

test.run();
