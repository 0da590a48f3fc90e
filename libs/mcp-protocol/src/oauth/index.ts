export { createClientCredentials } from './client-credentials.ts'
export { createLogin, type Loopback, openLoopback, sharedRefresh } from './login.ts'
export { createMemoryStorage, type Fetch, type OAuthOptions, type Person, type TokenStorage } from './options.ts'
