// The plugins of a cluster before a server starts: `@svc/plugin-manager/cluster`
export { catchUp, type TakenOver } from './change/take-over.ts'
