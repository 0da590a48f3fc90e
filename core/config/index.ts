// What a program needs to find its configuration, without the rest of the kernel
export { findConfig, type FindOptions, put, trustsAll } from './find.ts'
export { readConfigFile } from './load-file.ts'
export { CONFIG_FILES, configFilesIn, nearestConfig } from './search.ts'
export { CODE, withImported } from './imported.ts'
export { type ConfigCode, configCode, hashBefore, isTrusted, TRUSTED, trustCode } from './trust.ts'
export { foreignReason } from './owner.ts'
export { shownPath, svcHome } from './home.ts'
export { withHostPackages } from './host-packages.ts'
