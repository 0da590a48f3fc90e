export {
  exists,
  fromSystem,
  withPathErrors,
  invalidPath,
  isDirectory,
  isNoDirectory,
  isPathError,
  isProtected,
  isSpecial,
  missing,
  outside,
  pathError,
} from './errors.ts'
export { compileGlob } from './glob.ts'
export {
  type KeyedLock,
  claim,
  type Content,
  createLocks,
  type Folder,
  type Opened,
  openFileIn,
  openFolder,
  openFolderIn,
  openForTarget,
  openPlace,
  openToChange,
  putFile,
  readWhole,
} from './files.ts'
export {
  GIT_NAMES,
  isGitFolder,
  resolveProtectedPaths,
  PROTECTED_NAMES,
  type ProtectedEntry,
  protectedEntries,
  type ProtectedView,
  refuseMoveOf,
  refuseName,
} from './protected.ts'
export {
  openRoots,
  rootProblems,
  type ResolvedPath,
  realOf,
  type Root,
  type Roots,
  type RootsOptions,
  type Target,
} from './roots.ts'
export { newWalkStats, type Visit, walk, type WalkLimits, type WalkStats } from './walk.ts'
