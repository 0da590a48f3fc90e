// For a start: reads and verifies the installed plugins
export type { IsolationMode, Lock, LockedPlugin, Origin, Permissions } from './set/lock.ts'
export { isAbandoned, lockFile, pluginFolder, readLock, setFolder } from './set/lock.ts'
export { stampOfPlugin, verifyFiles, verifySet } from './set/verify.ts'
export { changedSince, readInstalled, unconfiguredIn, verified, watchFiles } from './set/installed-layer.ts'
export { type NodeRevision, readNodeRevision } from './set/node-revision.ts'
export type { CatchUp, CaughtUp } from './set/revisions.ts'
