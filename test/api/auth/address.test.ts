import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { callerAddress } from '../../../src/api/auth/address.js';

const test = suite("the caller's address");
const PROXIES = ['10.0.0.0/8', '2001:db8:1::/48', '::ffff:172.16.0.0/108'];

const cases: [
  what: string,
  trusted: string[],
  peer: string | undefined,
  forwarded: string | undefined,
  expected: string,
][] = [
  ['the peer', [], '203.0.113.7', undefined, '203.0.113.7'],
  ['no proxy is trusted', [], '203.0.113.7', '198.51.100.1', '203.0.113.7'],
  ['a peer that is no trusted proxy says nothing', PROXIES, '203.0.113.7', '198.51.100.1', '203.0.113.7'],
  ['behind a trusted proxy', PROXIES, '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  [
    'the last untrusted hop, not what the caller invented before it',
    PROXIES,
    '10.1.2.3',
    '1.1.1.1, 198.51.100.1, 10.9.9.9',
    '198.51.100.1',
  ],
  ['trusted hops only', PROXIES, '10.1.2.3', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
  ['a trusted proxy that says nothing', PROXIES, '10.1.2.3', undefined, '10.1.2.3'],
  ['an empty header', PROXIES, '10.1.2.3', '', '10.1.2.3'],
  ['garbage', PROXIES, '10.1.2.3', 'garbage', '10.1.2.3'],
  ['garbage before it is not looked at', PROXIES, '10.1.2.3', 'garbage, 198.51.100.1', '198.51.100.1'],
  ['what stands before garbage is not believed', PROXIES, '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
  ['no short or octal spellings', PROXIES, '10.1.2.3', '1', '10.1.2.3'],
  ['IPv4-mapped peers', PROXIES, '::ffff:10.1.2.3', '::ffff:198.51.100.1', '198.51.100.1'],
  ['IPv4-mapped networks', PROXIES, '172.16.5.5', '198.51.100.1', '198.51.100.1'],
  [
    'a network wider than all IPv4-mapped addresses trusts none of them',
    ['::ffff:0.0.0.0/64'],
    '203.0.113.7',
    '198.51.100.1',
    '203.0.113.7',
  ],
  ['all IPv4-mapped addresses as one network', ['::ffff:0.0.0.0/96'], '203.0.113.7', '198.51.100.1', '198.51.100.1'],
  ['IPv6', PROXIES, '2001:db8:1::5', '2001:DB8:0:0::9', '2001:db8::9'],
  ['ports', PROXIES, '10.1.2.3', '[2001:db8:2::9]:443, 10.0.0.9:1234', '2001:db8:2::9'],
  ['a zone', PROXIES, 'fe80::1%eth0', undefined, 'fe80::1'],
  ['a Unix socket', PROXIES, undefined, '198.51.100.1', 'unknown'],
];
for (const [what, trusted, peer, forwarded, expected] of cases) {
  test(what, () => assert.is(callerAddress(trusted)(peer, forwarded), expected));
}

test('a trusted proxy must be a CIDR', () => {
  assert.throws(() => callerAddress(['10.0.0.1/99']));
});

test.run();
