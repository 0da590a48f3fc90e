// Importing only the pool costs a third of the whole undici package, in time and memory. The version is pinned. The build puts
// this part of undici into the package: a bundler of a plugin cannot follow the calls of `require` in undici.
export { default } from 'undici/lib/dispatcher/pool.js'
