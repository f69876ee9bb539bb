import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { allowedAddresses, isPublicAddress } from '../../src/lib/publicAddress.js';

const test = suite('public addresses');

const PUBLIC = [
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '::ffff:1.1.1.1',
  '64:ff9b::1.1.1.1',
  '64:ff9b::101:101',
  '168.63.129.17',
  '2606:4700::1:5efe:1.1.1.1',
];

const NOT_PUBLIC: Readonly<Record<string, readonly string[]>> = {
  'this network': ['0.0.0.0', '0.1.2.3', '::'],
  'this host': ['127.0.0.1', '127.255.255.255', '::1'],
  'a private network': ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  'a provider’s network': ['100.64.0.1', '100.127.255.255'],
  'this link': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'metadata of a cloud': [
    '168.63.129.16',
    '::ffff:168.63.129.16',
    '169.254.169.254',
    '100.100.100.200',
    'fd00:ec2::254',
    '::ffff:169.254.169.254',
  ],
  'special purposes': ['192.0.0.1', '192.0.0.171', '198.18.0.1', '198.19.255.255', '192.88.99.1', '192.31.196.1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  'many hosts': ['224.0.0.1', '239.255.255.255', 'ff02::1', '255.255.255.255'],
  'no host yet': ['240.0.0.1', '254.1.1.1', '4000::1', '5f00::1', 'e000::1'],
  'mapped IPv4': ['::ffff:10.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:127.0.0.1', '::ffff:0.0.0.0'],
  'compatible IPv4': ['::127.0.0.1', '::a00:1', '::1.1.1.1'],
  'translated IPv4': ['::ffff:0:10.0.0.1', '::ffff:0:1.1.1.1'],
  NAT64: ['64:ff9b::10.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::1.1.1.1'],
  '6to4': ['2002:7f00:1::1', '2002:0a00:0001::1', '2002:101:101::1'],
  ISATAP: ['2a00:1450:4001:81b:0:5efe:10.0.0.1', '2606:4700::5efe:1.1.1.1', '2606:4700::200:5efe:a9fe:a9fe'],
  Teredo: ['2001:0:1:2:3:4:5:6', '2001::1'],
  'other uses of 2001::/23': ['2001:2::1', '2001:10::1', '2001:20::1', '2001:3::1', '2001:4:112::1'],
  'discarded, and site-local': ['100::1', 'fec0::1'],
  'another form': ['127.1', '0x7f.0.0.1', '0177.0.0.1', '2130706433', '1.1.1', '1.1.1.1:80', '[2606:4700::1]'],
  'no address': ['', ' ', 'localhost', 'example.com', '1.1.1.1 ', '::1::', '256.1.1.1', 'metadata.google.internal'],
};

for (const address of PUBLIC) test(`takes ${address}`, () => assert.is(isPublicAddress(address), true));

for (const [what, addresses] of Object.entries(NOT_PUBLIC))
  for (const address of addresses)
    test(`refuses ${what}: ${JSON.stringify(address)}`, () => assert.is(isPublicAddress(address), false));

test('refuses a network by all addresses that lead into it', () => {
  const refusedNetworks = ['1.1.1.0/24', '127.0.0.0/8', '::1/128'];
  const isPublic = allowedAddresses({ privateAddresses: false, refusedNetworks });
  for (const address of ['1.1.1.1', '::ffff:1.1.1.1', '64:ff9b::1.1.1.1', '64:ff9b::101:101'])
    assert.is(isPublic(address), false, address);
  for (const address of ['1.1.2.1', '64:ff9b::1.1.2.1', '2606:4700::1111']) assert.is(isPublic(address), true, address);
  const isAny = allowedAddresses({ privateAddresses: true, refusedNetworks });
  // Connecting to the unspecified address leads to this machine.
  for (const address of ['127.0.0.1', '::1', '0.0.0.0', '::', '::ffff:0.0.0.0', '64:ff9b::7f00:1'])
    assert.is(isAny(address), false, address);
  for (const address of ['10.0.0.1', 'fd00::1']) assert.is(isAny(address), true, address);
  const isAnyV6 = allowedAddresses({ privateAddresses: true, refusedNetworks: ['64:ff9b::/96'] });
  assert.is(isAnyV6('64:ff9b::1.1.1.1'), false);
});

test.run();
