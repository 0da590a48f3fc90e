// The plugins of a cluster before a server starts: `@svc/plugin-manager/cluster`
export { catchUp } from './change/take-over.ts'
