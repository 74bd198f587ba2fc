/** What runs in the thread that has the file of a queue. */

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serveCalls } from './sqlite-host.ts'

serveCalls(parentPort as MessagePort, workerData)
