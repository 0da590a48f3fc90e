export { type BodyRead, readBody } from './body.ts'
export {
  createGuardedFetch,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  type GuardedResponse,
} from './guarded-fetch.ts'
export type { FetchLimits } from './limits.ts'
export type { Resolve } from './resolve.ts'
