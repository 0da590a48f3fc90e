// What a program needs to find its configuration, without the rest of the kernel
export { CONFIG_FILES, findConfig, type FindOptions, put, readConfigFile } from './find.ts'
export { shownPath, svcHome } from './home.ts'
