export { type Gift, item, service, testHost, type TestHostOptions } from './host.ts'
export type { KitCase } from './kit.ts'
