export { type AddressGuard, createAddressGuard } from './addresses.ts'
export { type BodyRead, readBody } from './body.ts'
export { type FetchConfig, fetchKeys, fetchOptions } from './fetch-config.ts'
export {
  createGuardedFetch,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  type GuardedResponse,
} from './guarded-fetch.ts'
export type { FetchLimits } from './guarded-fetch.ts'
export { createNamedServer, type NamedServer } from './addresses.ts'
export { type ReachStep, reachSteps } from './reach.ts'
export { webFetch, webResponse, type WebResponseOptions } from './web-response.ts'
export { createGuardedResolve, type Resolve } from './resolve.ts'
