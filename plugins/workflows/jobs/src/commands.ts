import { JobsCancel, JobsKinds, JobsList, JobsRetry, JobsShow } from './commands/jobs.ts'

export const COMMANDS = {
  'jobs:list': JobsList,
  'jobs:show': JobsShow,
  'jobs:kinds': JobsKinds,
  'jobs:cancel': JobsCancel,
  'jobs:retry': JobsRetry,
}
