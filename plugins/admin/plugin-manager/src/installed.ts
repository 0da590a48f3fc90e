// What a start needs: to know what is installed, and whether it is as it was
export type { IsolationMode, Lock, LockedPlugin, Origin, Permissions } from './set/lock.ts'
export { isAbandoned, lockFile, pluginFolder, readLock, setFolder } from './set/lock.ts'
export { stampOfPlugin, verifyFiles, verifySet } from './set/verify.ts'
