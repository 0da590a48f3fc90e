export {
  exists,
  fromSystem,
  inWords,
  invalidPath,
  isDirectory,
  isNoDirectory,
  isOurs,
  isProtected,
  isSpecial,
  missing,
  outside,
  pathError,
} from './errors.ts'
export { compileGlob } from './glob.ts'
export {
  type Alone,
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
  placesOfAll,
  PROTECTED_NAMES,
  type ProtectedPlace,
  protectedPlaces,
  type ProtectedView,
  refuseMoveOf,
  refuseName,
} from './protected.ts'
export { openRoots, type Place, realOf, type Root, type Roots, type RootsOptions, type Target } from './roots.ts'
export { newTally, type Visit, walk, type WalkLimits, type WalkTally } from './walk.ts'
