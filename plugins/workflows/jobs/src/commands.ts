import { JobsCancel, JobsList, JobsRetry, JobsShow } from './commands/jobs.ts'

export const COMMANDS = {
  'jobs:list': JobsList,
  'jobs:show': JobsShow,
  'jobs:cancel': JobsCancel,
  'jobs:retry': JobsRetry,
}
