import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { webhookUrlFault } from '../../src/domain/webhookUrl.js';

const test = suite('addresses of webhooks');

const ASCII = 'must be an address, in ASCII';
const HTTPS = 'must begin with https:// and a host';
const EITHER = 'must begin with https:// or http:// and a host';
const USER = 'must not have a user or password';
const FRAGMENT = 'must not have a fragment';
const PUBLIC = 'must be a public address';
const LONG = ': at most 2048 characters';

/** With the fault of each: as a rule, and where private addresses are allowed. */
const CASES: readonly [url: string, fault: string | undefined, allowed: string | undefined][] = [
  ['https://shop.example', undefined, undefined],
  ['HTTPS://shop.example:8443/hooks/a%20b?x=1&y=@', undefined, undefined],
  ['https://shop.example//hooks@home', undefined, undefined],
  ['https://xn--bcher-kva.example/', undefined, undefined],
  ['https://10.0.0.1.shop.example/', undefined, undefined],
  ['https://1.1.1.1/', undefined, undefined],
  ['https://[2606:4700:4700::1111]/', undefined, undefined],
  ['https://localhost/', undefined, undefined],
  [`https://shop.example/${'a'.repeat(2_027)}`, undefined, undefined],
  [`https://shop.example/${'a'.repeat(2_028)}`, LONG, LONG],
  ['http://shop.example/', HTTPS, undefined],
  ['ftp://shop.example/', HTTPS, EITHER],
  ['file:///etc/passwd', HTTPS, EITHER],
  ['javascript:alert(1)', HTTPS, EITHER],
  ['gopher://shop.example/', HTTPS, EITHER],
  ['HTTPS:shop.example', HTTPS, EITHER],
  ['https:/shop.example', HTTPS, EITHER],
  ['https:///shop.example', HTTPS, EITHER],
  ['http:shop.example', HTTPS, EITHER],
  ['', ASCII, ASCII],
  ['shop.example', ASCII, ASCII],
  ['https://', ASCII, ASCII],
  ['https://bücher.example/', ASCII, ASCII],
  [' https://shop.example/', ASCII, ASCII],
  ['https://shop.example/\n', ASCII, ASCII],
  ['https:\\\\shop.example\\', ASCII, ASCII],
  ['https://sh\top.example/', ASCII, ASCII],
  ['https://256.1.1.1/', ASCII, ASCII],
  ['https://shop.example:65536/', ASCII, ASCII],
  ['https://ann:secret@shop.example/', USER, USER],
  ['https://ann@shop.example/', USER, USER],
  ['https://@shop.example/', USER, USER],
  ['https://:@shop.example/', USER, USER],
  ['https://shop.example/#', FRAGMENT, FRAGMENT],
  ['https://shop.example/#a', FRAGMENT, FRAGMENT],
  ['https://127.0.0.1/', PUBLIC, undefined],
  ['https://127.0.0.1./', PUBLIC, undefined],
  ['https://127.1/', PUBLIC, undefined],
  ['https://0x7f.0.0.1/', PUBLIC, undefined],
  ['https://0177.0.0.1/', PUBLIC, undefined],
  ['https://2130706433/', PUBLIC, undefined],
  ['https://%31%32%37.0.0.1/', PUBLIC, undefined],
  ['https://169.254.169.254/latest/meta-data/', PUBLIC, undefined],
  ['https://10.0.0.1:8443/', PUBLIC, undefined],
  ['https://[::1]/', PUBLIC, undefined],
  ['https://[::ffff:127.0.0.1]/', PUBLIC, undefined],
  ['https://[64:ff9b::a9fe:a9fe]/', PUBLIC, undefined],
  ['http://127.0.0.1:3000/hooks', HTTPS, undefined],
];

for (const [url, fault, allowed] of CASES)
  test(`${fault === undefined ? 'takes' : 'refuses'} ${JSON.stringify(url).slice(0, 70)}`, () => {
    assert.is(webhookUrlFault(url, { privateAddresses: false, refusedNetworks: [] }), fault);
    assert.is(webhookUrlFault(url, { privateAddresses: true, refusedNetworks: [] }), allowed);
  });

test('refuses an address in a refused network, also where private addresses are allowed', () => {
  const refusedNetworks = ['93.184.215.0/24', '::1/128'];
  for (const privateAddresses of [false, true])
    for (const host of ['93.184.215.14', '[::ffff:93.184.215.14]', '[::1]'])
      assert.is(webhookUrlFault(`https://${host}/`, { privateAddresses, refusedNetworks }), PUBLIC, host);
  assert.is(webhookUrlFault('https://93.184.216.14/', { privateAddresses: false, refusedNetworks }), undefined);
});

test.run();
