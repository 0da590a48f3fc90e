// What is installed (alone as @svc/plugin-set/installed, for a start)
export * from './installed.ts'
// Changing it
export type {
  BuiltSet,
  Candidate,
  ChangeRequest,
  FoundPlugin,
  PermissionChange,
  Progress,
  SetOptions,
  StagedChange,
} from './change-types.ts'
export { planChange } from './plan-change.ts'
export { changeLock, sweepSets } from './change-lock.ts'
// Carrying it to another machine
export { packSet } from './pack-set.ts'
export { planRestore } from './plan-restore.ts'
export { strayDependencies, type Wishes } from './stray.ts'
// Looking for more
export { searchPlugins } from './search.ts'
