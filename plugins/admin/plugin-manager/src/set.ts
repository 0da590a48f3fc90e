// What is installed (alone as @svc/plugin-manager/installed, for a start)
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
} from './set/change-types.ts'
export { planChange } from './set/plan-change.ts'
export { changeLock, sweepSets } from './set/staging.ts'
// Carrying it to another machine
export { packSet } from './set/pack-set.ts'
export { planRestore } from './set/plan-restore.ts'
export { strayDependencies, type Wishes } from './set/package-json.ts'
// Looking for more
export { searchPlugins } from './set/npm.ts'
