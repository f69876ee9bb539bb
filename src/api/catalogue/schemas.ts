/** Schemas and examples (docs/api/gifts.md#gift, docs/api/catalogue.md#tile-pins). */
import type { Schema } from '../pipeline/route.js';
import { countSchema, entity, flagSchema, integerSchema, listSchema, orNull, textSchema } from '../pipeline/schemas.js';

const ID = textSchema('An identifier.');

function ids(description: string): Schema {
  return listSchema(textSchema(), description);
}

export const productSchema = entity('Product', {
  id: ID,
  brand_id: textSchema('The brand it is a product of.'),
  name: textSchema(),
  description: textSchema('May be empty.'),
  sale_price: countSchema('Price in pence.'),
  price: textSchema('Price in pounds, with two decimals.', { pattern: '^\\d+\\.\\d{2}$' }),
  image_url: textSchema('May be empty.'),
  active: flagSchema('False: no longer sold, but known from gifts bought earlier.'),
  segments: ids('Ids of the segments its vouchers may be of.'),
  valid_days: integerSchema('How many days after the purchase a gift of it expires.', { minimum: 1 }),
});

export const brandSchema = entity('Brand', {
  id: ID,
  name: textSchema(),
  description: textSchema('May be empty.'),
  image_url: textSchema('May be empty.'),
  merchant_id: textSchema('The merchant whose users redeem its gifts.'),
  integration_id: orNull(textSchema('Its main integration method; ids 1 to 6 have V1 vouchers.')),
  active: flagSchema(),
  consolidated: integerSchema('1 for a consolidated brand.', { enum: [0, 1] }),
  products: ids('Ids of the active products specific to the brand that the caller may see.'),
  consolidated_products: ids(
    'Ids of the active consolidated products that the brand accepts and the caller may see; empty for a consolidated brand.',
  ),
});

export const categorySchema = entity('Category', {
  id: ID,
  name: textSchema(),
  image_url: textSchema('May be empty.'),
  type: { type: 'string', const: 'Category' },
  featured: { type: 'integer', enum: [0, 1] },
  products: ids('Ids of the associated products that the caller may see.'),
});

export const storeSchema = entity('Store', {
  id: ID,
  brand_id: textSchema('The brand it serves.'),
  name: textSchema(),
  address: textSchema('May be empty.'),
  postcode: textSchema('May be empty.'),
  longitude: { type: 'number', minimum: -180, maximum: 180, description: 'Degrees, WGS 84.' },
  latitude: { type: 'number', minimum: -90, maximum: 90, description: 'Degrees, WGS 84.' },
});

export const segmentSchema = entity('Segment', {
  id: ID,
  name: textSchema(),
  voucherType: textSchema('What its vouchers are shown as: `qr`, `alpha/qr` or `alpha/pin`.'),
  expiry: integerSchema('How many days a voucher of it is valid, at most as long as its gift.'),
  configuration: { type: 'object', additionalProperties: true, description: 'Settings of the voucher provider.' },
});

export const integrationSchema = entity('Integration', {
  id: ID,
  name: textSchema(),
});

const DEGREES = { type: 'number', description: 'Degrees, WGS 84.' } as const;

const boxSchema = entity('Box', { west: DEGREES, south: DEGREES, east: DEGREES, north: DEGREES });

const storePinSchema = entity('StorePin', {
  id: textSchema("The store's id."),
  type: { type: 'string', const: 'store' },
  brand_id: textSchema(),
  name: textSchema(),
  longitude: DEGREES,
  latitude: DEGREES,
});

const clusterPinSchema = entity('ClusterPin', {
  id: textSchema('The same for the same stores and granularity.'),
  type: { type: 'string', const: 'cluster' },
  count: integerSchema('How many stores it stands for.', { minimum: 2 }),
  longitude: DEGREES,
  latitude: DEGREES,
  area: boxSchema,
});

export const tileSchema = entity('Tile', {
  id: textSchema('The Web Mercator tile: z/x/y.', { pattern: '^\\d+/\\d+/\\d+$' }),
  bounds: boxSchema,
  pins: listSchema({ oneOf: [storePinSchema, clusterPinSchema] }),
});

export const productExample = {
  id: 'product-flat-white',
  brand_id: 'brand-kettle-and-crumb',
  name: 'Flat white',
  description: 'A double shot and steamed milk, hot or iced.',
  sale_price: 375,
  price: '3.75',
  image_url: 'https://images.example/flat-white.jpg',
  active: true,
  segments: ['segment-hot-drinks'],
  valid_days: 365,
};

export const brandExample = {
  id: 'brand-kettle-and-crumb',
  name: 'Kettle & Crumb',
  description: 'Coffee and baking on the high street.',
  image_url: 'https://images.example/kettle-and-crumb.png',
  merchant_id: 'merchant-kettle-and-crumb',
  integration_id: '1',
  active: true,
  consolidated: 0,
  products: ['product-flat-white'],
  consolidated_products: [],
};

export const categoryExample = {
  id: 'category-coffee',
  name: 'Coffee & tea',
  image_url: '',
  type: 'Category',
  featured: 1,
  products: ['product-flat-white'],
};

export const storeExample = {
  id: 'store-kettle-covent-garden',
  brand_id: 'brand-kettle-and-crumb',
  name: 'Kettle & Crumb Covent Garden',
  address: '12 Neal Street, London',
  postcode: 'WC2H 9LY',
  longitude: -0.1256,
  latitude: 51.5142,
};

export const segmentExample = {
  id: 'segment-hot-drinks',
  name: 'Hot drinks',
  voucherType: 'qr',
  expiry: 90,
  configuration: {},
};

export const tileExample = {
  id: '16/32745/21790',
  bounds: { west: -0.1263427734375, south: 51.512161249555156, east: -0.120849609375, north: 51.51557978375591 },
  pins: [
    {
      id: 'store-kettle-covent-garden',
      type: 'store',
      brand_id: 'brand-kettle-and-crumb',
      name: 'Kettle & Crumb Covent Garden',
      longitude: -0.1256,
      latitude: 51.5142,
    },
    {
      id: '5b1f0c2a9d3e4f608172',
      type: 'cluster',
      count: 3,
      longitude: -0.1231,
      latitude: 51.5137,
      area: { west: -0.1243, south: 51.5129, east: -0.1212, north: 51.5148 },
    },
  ],
};
