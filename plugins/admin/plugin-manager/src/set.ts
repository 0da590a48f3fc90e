// Installed plugins (also @svc/plugin-manager/installed, for a start)
export * from './installed.ts'
// Changes
export type {
  BuiltSet,
  PluginCandidate,
  ChangeRequest,
  FoundPlugin,
  PermissionChange,
  Progress,
  SetOptions,
  StagedChange,
} from './set/change-types.ts'
export { mapAtOnce } from './set/at-once.ts'
export { pathIn } from './set/spec.ts'
export { filesMissing, notBuilt } from './set/errors.ts'
export { planChange } from './set/plan-change.ts'
export { changeLock, sweepSets } from './set/staging.ts'
// Transfer to another machine
export { packLock, packSet } from './set/pack-set.ts'
export { planRestore } from './set/plan-restore.ts'
// The plugins of a cluster, in its store
export {
  type CatchUp,
  type CaughtUp,
  fetchRevision,
  newestRevision,
  type Revision,
  REVISION_SPACE,
  type RevisionStore,
  type RevisionFacts,
  type TakenOver,
  watchRevisions,
  writeRevision,
} from './set/revisions.ts'
export { consentDiffers, platformDiffers, revisionBehind } from './set/errors.ts'
export { hasRevision, writeNodeRevision } from './set/node-revision.ts'
export { needsSet, triedLock } from './set/lock.ts'
export { type NpmLock, readNpmLock } from './set/lock-graph.ts'
export { entryOf, strayDependencies, type DependencyLists } from './set/package-json.ts'
// The packages of svc in a set
export { givenPackages } from './set/given-packages.ts'
// Search
export { searchPlugins } from './set/npm.ts'
