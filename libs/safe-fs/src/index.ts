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
export { type Folder, type Opened, openFileIn, openFolder, openFolderIn, openPlace, openToChange, readWhole } from './opened.ts'
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
export { type Alone, createLocks } from './locks.ts'
export { openRoots, type Place, realOf, type Root, type Roots, type RootsOptions, type Target } from './roots.ts'
export { newTally, type Visit, walk, type WalkLimits, type WalkTally } from './walk.ts'
export { claim, type Content, openForTarget, putFile } from './write.ts'
