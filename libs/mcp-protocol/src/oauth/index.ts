export { createClientCredentials } from './client-credentials.ts'
export { createLogin, sharedRefresh } from './login-provider.ts'
export { type Loopback, openLoopback } from './loopback.ts'
export { createMemoryStorage, type Fetch, type OAuthOptions, type Person, type TokenStorage } from './options.ts'
